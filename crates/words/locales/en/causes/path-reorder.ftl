path-reorder-title = The road changes the order of packets
path-reorder-because = { $share } of the datagrams outside the tunnel came from { $from } to { $to } behind later ones, up to { $places } places: the road itself changes their order, and TCP takes what is late for lost.
path-reorder-line-datagrams = numbered datagrams outside the tunnel at { $rate }: received, and after a later one, { $direction }
path-reorder-line-extent = farthest of them: places too late, { $direction }
path-reorder-line-met = tcpi_reordering of the tunnel's loads (3 = none met), { $direction }
path-reorder-line-again = segments sent again through the tunnel, and of those for nothing (DSACK), { $direction }
path-reorder-refused = tuning WireGuard, its MTU, buffers or queues
path-reorder-refused-why = the order is lost on the road; WireGuard accepts packets up to 8,000 places late (its replay window) and hands them on as they come. Show these figures to whoever runs the line: links bundled packet by packet do this
path-reorder-not-counted = { $direction }: no datagrams were counted outside the tunnel
path-reorder-watched = a watch sends no datagrams to be counted
path-reorder-no-wirespeed = no wirespeed at the far end counts datagrams
