# What the probes say of the tunnel's MTU.

mtu-line-outside = tunnel packet outside against path MTU
mtu-line-route = MTU of the route to the peer's endpoint
mtu-line-probe = don't-fragment probe ({ $method }): largest passed, smallest failed
mtu-line-reported = "fragmentation needed" or "packet too big" came back
mtu-line-sweep = size sweep inside the tunnel: largest passed, smallest lost
