mtu-below-path-title = The tunnel's MTU is smaller than it needs to be
