unexplained-title = The tunnel is slow, and none of the known causes shows
