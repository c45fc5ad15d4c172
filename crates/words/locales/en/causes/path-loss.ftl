path-loss-title = The road loses packets though nothing fills it
path-loss-because = Of { $sent } small datagrams outside the tunnel { $lost } were lost on the way from { $from } to { $to }, in { $places ->
    [one] one place
   *[other] { $places } places
 }, though nothing filled the road: the line itself loses packets.
path-loss-because-softened = Of { $sent } small datagrams outside the tunnel { $lost } were lost on the way from { $from } to { $to }, in { $places ->
    [one] one place
   *[other] { $places } places
 }, though nothing filled the road: the line itself loses packets; another congestion control bears it better, as was measured.
path-loss-line-datagrams = numbered datagrams outside the tunnel, without load: sent and received, { $direction }
path-loss-line-share = share of them lost: at least, and counted, { $direction }
path-loss-refused = tuning WireGuard, its MTU, buffers or queues
path-loss-refused-why = the packets are lost on the road, before any tunnel has a part in it: show these figures to whoever runs the line
path-loss-not-counted = { $direction }: no datagrams were counted outside the tunnel
path-loss-watched = a watch sends no datagrams to be counted
path-loss-no-wirespeed = no wirespeed at the far end counts datagrams
