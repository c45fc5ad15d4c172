congestion-control-title = The sender's congestion control backs off from loss that is not congestion
congestion-control-because = With { $tried } instead of { $current } the same transfer is { $gain } faster: the loss here is not congestion, but { $current } backs off from it.
congestion-control-line-rates = TCP goodput with { $current } and with { $tried }, in turn, { $direction }
congestion-control-line-gain = gain: lower end and middle of its interval
congestion-control-line-again = segments sent again once each load's start was over, { $direction }
congestion-control-remedy-route = { $tried } for what leaves by { $place }
congestion-control-risk-route = only connections this machine sends through the tunnel{ $kernel ->
    [paces] {""}
   *[other] ; kernel { $kernel } paces only with the fq queueing discipline: set it too
 }{ $routes ->
    [alike] {""}
    [unknown] ; what its routes have now is not known, and `ip route show dev { $interface } table all` tells: note it for the way back
   *[differ] ; its routes have different ones now, which `ip route show dev { $interface } table all` tells: note them for the way back
 }
congestion-control-remedy-default = { $tried } for every connection of { $host }
congestion-control-risk-default = every other connection of the machine changes too{ $kernel ->
    [paces] {""}
   *[other] ; kernel { $kernel } paces only with the fq queueing discipline: set it too
 }
congestion-control-unknown-pairs = { $direction }: loss was seen, but only { $pairs ->
    [one] { $pairs } pair with another congestion control was taken
   *[other] { $pairs } pairs with another congestion control were taken
 }: at least { $needed } are needed
congestion-control-unknown-tried = { $direction }: loss was seen, but another congestion control was not tried
congestion-control-unknown-again = { $direction }: { NUMBER($percent, minimumFractionDigits: 1, maximumFractionDigits: 1) } % of what the tunnel's connections sent was sent again; why is not known without a load
congestion-control-unknown-load = what a sender makes of loss
