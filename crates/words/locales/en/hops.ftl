# A chain of hops.

hops-worst-tunnel = the tunnel { $hop } carries { $share } of its own road ({ $direction }), { $low } to { $high } for sure; a hop should carry { $should }
hops-worst-road = no tunnel loses too much of its road; the narrowest hop is { $hop }, which carries { $rate } ({ $direction }), and no tuning of WireGuard widens a road
hops-worst-road-perhaps = the narrowest road is { $hop }, which carries { $rate } ({ $direction }); whether every tunnel carries its share of its road could not be told
hops-worst-slowest = the slowest is the tunnel { $hop }, which carries { $rate } ({ $direction }); the road under it could not be measured
hops-remark-in-between = each hop is fine by itself and the whole is not: look at the machines in between while they forward (their cores, their firewall, MSS clamping on their tunnels)
hops-remark-no-tunnel = no WireGuard tunnel joins any two of these machines
hops-remark-rule = over { $hops } WireGuard hops the whole should carry at least { $share } of the worst hop outside its tunnel
hops-remark-no-rule = { $hops } WireGuard hops are more than the rule of { $share } speaks of ({ $most }): each hop is judged by itself
hops-remark-another-way = the round trip from end to end ({ $whole }) is longer than the hops' together ({ $hops }): the traffic takes another way than this chain
hops-remark-no-yardstick = { $direction }: the whole carries { $rate }, but not every hop could be measured outside its tunnel, so there is no yardstick
