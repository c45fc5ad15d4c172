forward-gro-title = A gateway hands datagrams one by one into the tunnel
