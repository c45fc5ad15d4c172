nested-tunnel-title = The tunnel runs inside another tunnel
nested-tunnel-because = What { $place } sends goes through { $outer } ({ $kind }) again: every packet is wrapped twice, and only as fast as that tunnel.
nested-tunnel-because-too-large = What { $place } sends goes through { $outer } ({ $kind }) again, and a full packet is { $excess ->
    [one] one byte
   *[other] { $excess } bytes
 } too large for that: it is fragmented or lost there.
nested-tunnel-line-route = the route to the peer's endpoint leaves by
nested-tunnel-line-mtu = MTU of { $outer }, and this tunnel's with its { $overhead } bytes of headers
nested-tunnel-remedy-stack = Stack the MTUs: { $mtu } at both ends, so that full packets fit { $outer }
nested-tunnel-risk-stack = smaller packets cost a little throughput
nested-tunnel-risk-stack-ipv6 = { $mtu } is below { $least }: IPv6 stops working inside the tunnel
nested-tunnel-remedy-around = Drop a layer: a route to { $to } that does not leave by { $outer }
nested-tunnel-persistence-around = the same route where this machine's network is configured (networkd, NetworkManager, PostUp)
nested-tunnel-risk-around = the peer then sees another address of this machine, and what { $outer } hid is seen on the road; some networks let nothing else out
nested-tunnel-unknown-route = { $host }: the way to { $to } is not known: { $because }
