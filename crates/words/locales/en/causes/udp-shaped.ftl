udp-shaped-title = The road slows UDP, or the tunnel's port, and not TCP
udp-shaped-because-all = From { $from } to { $to } the road carries TCP at { $tcp }, but of UDP at { $offered } only { $arrived } arrives: somebody on the way limits UDP, and the tunnel is UDP.
udp-shaped-because-tunnel = From { $from } to { $to } { $share } of the tunnel's packets are lost on the road, while UDP to port { $port } passes at { $offered }: somebody on the way treats the tunnel's port, or WireGuard, worse than the rest.
udp-shaped-line-udp = UDP outside the tunnel, port { $port }: offered and arrived, { $direction }
udp-shaped-remedy-try = Try another port; some networks spare 443 or 53, and others limit all UDP
udp-shaped-remedy-try-port = Try port { $port }; some networks slow one port alone (443 as QUIC’s), others limit all UDP
udp-shaped-remedy-try-by-hand = Try another port; some networks spare 443 or 53, and others limit all UDP (by hand: the address that is called is neither end's own)
udp-shaped-remedy-move = Move the tunnel to another port, then measure again
udp-shaped-remedy-move-by-hand = Move the tunnel to another port, then measure again (by hand: the address that is called is neither end's own)
udp-shaped-persistence = `ListenPort = { $port }` there and `Endpoint = …:{ $port }` in every peer's file
udp-shaped-risk = every peer needs the new port, and firewalls on the way have to let it in
udp-shaped-refused = larger buffers, another MTU or another congestion control
udp-shaped-refused-why = what a network on the way takes out, no setting of the ends brings back; tell the operator, with these figures
udp-shaped-unknown = { $direction }: the tunnel is far slower than TCP outside, but UDP outside was not measured
