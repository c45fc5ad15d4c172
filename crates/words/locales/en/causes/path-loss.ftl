path-loss-title = The road loses packets though nothing fills it
