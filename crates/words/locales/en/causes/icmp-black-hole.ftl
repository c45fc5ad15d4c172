icmp-black-hole-title = Packets too large for the path vanish without an error
