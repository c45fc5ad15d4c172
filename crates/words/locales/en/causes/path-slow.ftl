path-slow-title = The road itself is slow; the tunnel is not to blame
