udp-shaped-title = The road slows UDP, or the tunnel's port, and not TCP
