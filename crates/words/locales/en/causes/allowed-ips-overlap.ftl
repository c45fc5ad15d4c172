allowed-ips-overlap-title = A peer's addresses belong to another peer
allowed-ips-overlap-because-taken = A prefix belongs to one peer only, and peer { $peer } on { $place } was left without its own: packets for it go to peer { $holder }.
allowed-ips-overlap-because-one = A prefix belongs to one peer only, and peer { $peer } on { $place } was left without its own: nothing can be sent to it, and what it sends is dropped.
allowed-ips-overlap-because-aside = Packets for { $address }, the address of { $host } in the tunnel, go to peer { $holder } on { $place }. Peer { $peer } has other prefixes, and what they are for passes: that is a fault only if { $address } is meant to be reached.
allowed-ips-overlap-because-several = A prefix belongs to one peer only, and { $count } peers on { $place } have none: nothing can be sent to them, and what they send is dropped ({ $peers }).
allowed-ips-overlap-line-holder = peer that holds { $address }, the address of { $host }
allowed-ips-overlap-line-prefixes = allowed IPs of peer { $peer }
allowed-ips-overlap-none = none
allowed-ips-overlap-line-frame-errors = rx_frame_errors while probing: packets from outside the allowed IPs
allowed-ips-overlap-line-dropped = dropped by { $program } while probing: packets from outside the allowed IPs
allowed-ips-overlap-remedy-one = Give peer { $peer } its own prefix, and every other peer its own
allowed-ips-overlap-remedy-several = Give each of these peers its own prefix, and every other peer its own
allowed-ips-overlap-persistence = `AllowedIPs =` under each [Peer] in the wg-quick file, no prefix twice
allowed-ips-overlap-risk = takes the prefix from the peer that holds it now
allowed-ips-overlap-unknown-peers = the peers on { $host } are not known
allowed-ips-overlap-unknown-peers-because = the peers of { $place } are not known: { $because }
allowed-ips-overlap-unknown-meant = whether peer { $peer } on { $place } lacks anything is not known: { $address } belongs to peer { $holder }, but it has other prefixes, and nothing was sent that would tell
allowed-ips-overlap-unknown-address = which address { $host } has inside the tunnel is not known, so only peers without any prefix can be told
