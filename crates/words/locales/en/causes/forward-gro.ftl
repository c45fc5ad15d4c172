forward-gro-title = A gateway hands datagrams one by one into the tunnel
forward-gro-because = { $host } has no processor time to spare and forwards packets into { $tunnel }, which takes datagrams in trains; but what comes by { $links } is not coalesced (rx-udp-gro-forwarding off), so each datagram of UDP (QUIC, calls) goes by itself.
forward-gro-line-forwarded = packets forwarded (Ip ForwDatagrams), { $direction }
forward-gro-line-feature = `ethtool -k { $interface }`: { $feature }
forward-gro-remedy = Coalesce the UDP that is forwarded
forward-gro-risk = needs rx-gro-list off; drivers that mishandle trains of datagrams lose them
forward-gro-refused = rx-udp-gro-forwarding on { $host }
forward-gro-refused-why = it does nothing for a tunnel that the kernel carries: WireGuard takes each outer datagram before any train is made of them (net/ipv4/udp_offload.c, udp_gro_receive), and cuts what it is given to seal it
