numa-remote-title = The card's packets are received on another NUMA node
numa-remote-because = { $card } hangs on NUMA node { $node }, and { $share } of its interrupts go to cores of another.
numa-remote-line-node = numa_node of the card, and its cores: { $cores }
numa-remote-line-interrupts = interrupts of the card, and those on other nodes' cores, { $direction }
numa-remote-remedy = The interrupts of { $card } on the cores of its own node ({ $cores })
numa-remote-refused = keeping the kernel's WireGuard off the other node's cores on { $host }
numa-remote-refused-why = its crypto workers are one per online core and have no mask (alloc_workqueue without WQ_SYSFS or WQ_UNBOUND, drivers/net/wireguard/device.c)
numa-remote-unknown = { $place }: whether its packets are received on its own NUMA node is not known: { $because }
