mtu-exceeds-path-title = The tunnel's MTU is larger than the path carries
