accept-queue-title = Connections are made faster than a program accepts them
