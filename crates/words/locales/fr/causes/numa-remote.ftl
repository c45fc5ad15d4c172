numa-remote-title = Les paquets de la carte réseau sont reçus sur un autre nœud NUMA
numa-remote-because = La carte réseau { $card } est rattachée au nœud NUMA { $node }, et { $share } de ses interruptions vont à des cœurs d’un autre nœud.
numa-remote-line-node = numa_node de la carte réseau, et cœurs de ce nœud : { $cores }
numa-remote-line-interrupts = interruptions de la carte réseau, et celles qui vont à des cœurs d’autres nœuds, { $direction }
numa-remote-remedy = Les interruptions de { $card } sur les cœurs de son propre nœud ({ $cores })
numa-remote-refused = tenir le WireGuard du noyau à l’écart des cœurs de l’autre nœud sur { $host }
numa-remote-refused-why = il chiffre dans une file de travail par cœur en ligne, sans masque (alloc_workqueue sans WQ_SYSFS ni WQ_UNBOUND, drivers/net/wireguard/device.c)
numa-remote-unknown = { $place } : on ignore si ses paquets sont reçus sur son propre nœud NUMA : { $because }
