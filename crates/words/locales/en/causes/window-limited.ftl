window-limited-title = A connection waits for its window, not for the road
