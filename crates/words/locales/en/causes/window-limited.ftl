window-limited-title = A connection waits for its window, not for the road
window-limited-because = One connection reaches { $rate } because { $share } of the time it waits for { $window ->
    [receiver] the receiver's window (tcpi_rwnd_limited)
   *[sender] its own send buffer (tcpi_sndbuf_limited)
 }: { $bytes } bytes per round trip of { $rtt } are no more. Several together reach { $several }.
window-limited-because-watched = A connection of the tunnel to { $remote } waits { $share } of its time for { $window ->
    [receiver] the receiver's window (tcpi_rwnd_limited)
   *[sender] its own send buffer (tcpi_sndbuf_limited)
 }: { $sysctl } may be too small for the way, or the program too slow.
window-limited-line-watched = share of the busy time the connection to { $remote } waited for { $window ->
    [receiver] the receiver's window (tcpi_rwnd_limited)
   *[sender] its own send buffer (tcpi_sndbuf_limited)
 }
window-limited-line-watched-rate = its goodput while it was watched
window-limited-line-waited = share of the busy time the sender waited for { $window ->
    [receiver] the receiver's window (tcpi_rwnd_limited)
   *[sender] its own send buffer (tcpi_sndbuf_limited)
 }, { $direction }
window-limited-line-under-way = bytes under way per round trip of { $rtt }, { $direction }
window-limited-line-rates = TCP goodput through the tunnel: one connection, and several, { $direction }
window-limited-line-largest = { $sysctl }, largest
window-limited-remedy = Let a connection of { $host } have a buffer of up to { $mebibytes } MiB
window-limited-risk = up to { $mebibytes } MiB of memory for each connection that fills it; programs that set SO_RCVBUF or SO_SNDBUF themselves gain nothing
window-limited-unknown = { $direction }: what the sender's TCP waited for is not known
window-limited-unknown-several = whether several connections are faster than one
