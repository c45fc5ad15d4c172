offload-off-title = Offloads are off, and a processor is the limit
offload-off-because = A processor of { $host } is the limit, and { $offloads } { $count ->
    [one] is
   *[other] are
 } off: the kernel does for every packet what it could do for many at once.
offload-off-name = { $offload } of { $link }
offload-off-remedy = Turn these offloads on
offload-off-risk = somebody may have turned them off because a driver mangles packets: look at segments sent again and at checksums afterwards
offload-off-unknown = { $place }: which offloads are on is not known
