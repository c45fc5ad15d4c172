allowed-ips-overlap-title = A peer's addresses belong to another peer
