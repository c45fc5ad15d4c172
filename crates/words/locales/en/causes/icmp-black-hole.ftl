icmp-black-hole-title = Packets too large for the path vanish without an error
icmp-black-hole-because = The path carries { $mtu } bytes, the tunnel sends { $sent }, and no "fragmentation needed" comes back: the sender never learns why its full packets are lost.
icmp-black-hole-because-unknown = The path carries an unknown size, the tunnel sends { $sent }, and no "fragmentation needed" comes back: the sender never learns why its full packets are lost.
icmp-black-hole-remedy-probing = Let TCP on the senders probe for the size that passes
icmp-black-hole-risk-probing = every TCP connection of the machine; helps only connections that start or end there, and only after a stall of some seconds; UDP and QUIC gain nothing
