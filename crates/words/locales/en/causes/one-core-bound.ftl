one-core-bound-title = One core is full while the others have room
one-core-bound-because = One core is { $busy } busy while the others are at { $others } and the tunnel is slower than the road.
one-core-bound-because-confined = One core is { $busy } busy while the others are at { $others } and the tunnel is slower than the road; { $program } may only use { $count ->
    [one] core
   *[other] cores
 } { $cpus }.
one-core-bound-daemon = the daemon
one-core-bound-line-cores = cores { $program } may use (Cpus_allowed_list)
one-core-bound-line-process = processor time of { $process }, { $direction }
one-core-bound-remedy-every-core = Let the tunnel's daemon use every core
one-core-bound-persistence-every-core = remove taskset from the start of the daemon, or CPUAffinity= from its unit
one-core-bound-risk-every-core = somebody may have confined it on purpose
one-core-bound-remedy-steering = Spread the tunnel's packets over the cores (RPS on the tunnel interface)
one-core-bound-persistence-steering = the same line as PostUp in the wg-quick file
one-core-bound-risk-steering = costs throughput where packets are small and cores few: measure before and after
one-core-bound-remedy-ports = Spread the peers over the card's queues (RSS over UDP ports)
one-core-bound-persistence-ports = the same lines as `post-up` of the card in /etc/network/interfaces, or in a unit that runs when the network is up
one-core-bound-risk-ports = fragments of UDP have no ports: they go to another queue than the rest, and arrive out of order
one-core-bound-remedy-tunnels = Several tunnels between the same sites, with the traffic spread over them
one-core-bound-remedy-tunnels-or-device = Several tunnels between the same sites, with the traffic spread over them; or a data plane that uses every core: { $device } --workers N --spread, measured against the kernel's
one-core-bound-risk-tunnels = a change of the set-up at both ends
