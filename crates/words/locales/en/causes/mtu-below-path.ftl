mtu-below-path-title = The tunnel's MTU is smaller than it needs to be
mtu-below-path-because = The path carries { $path } bytes, so the tunnel could use { $could } instead of { $now }; on a road limited by bandwidth that is worth { NUMBER($worth, minimumFractionDigits: 1, maximumFractionDigits: 1) } %.
mtu-below-path-because-busy = The path carries { $path } bytes, the tunnel uses { $now } instead of { $could }, and an end is out of processor: { $more } more packets for the same bytes.
mtu-below-path-line-mtu = tunnel MTU against path MTU - { $room }, { $direction }
mtu-below-path-line-busiest = busiest core during the tunnel's loads, { $direction }
mtu-below-path-remedy = Raise the tunnel's MTU to { $mtu } at both ends
mtu-below-path-risk = if any direction or a later path carries less, full packets are lost: confirm with a bulk transfer both ways
mtu-below-path-risk-others = { $others ->
    [one] { $others } other peer uses
   *[other] { $others } other peers use
 } { $place }, whose roads were not measured: the narrowest decides, and full packets to it are lost
