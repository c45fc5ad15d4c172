conntrack-full-title = No room for new connections in connection tracking
conntrack-full-because = The connection tracking table of { $host } was { $fill } full ({ $entries } of { $room } connections): soon new ones will be refused.
conntrack-full-because-refused = The connection tracking table of { $host } was { $fill } full ({ $entries } of { $room } connections): { $refused ->
    [one] one packet of a new connection was dropped
   *[other] { $refused } packets of new connections were dropped
 }.
conntrack-full-because-displaced = The connection tracking table of { $host } was { $fill } full ({ $entries } of { $room } connections): { $displaced ->
    [one] one connection had to give way to a new one
   *[other] { $displaced } connections had to give way to new ones
 }.
conntrack-full-line-table = net.netfilter.nf_conntrack_max, nf_conntrack_count (fullest)
conntrack-full-line-refused = packets of new connections dropped (`drop` in /proc/net/stat/nf_conntrack)
conntrack-full-line-displaced = connections displaced (`early_drop`)
conntrack-full-line-failed = entries that found no place (`insert_failed`)
conntrack-full-remedy-room = Room for { $room } connections
conntrack-full-risk-room = up to { $mebibytes } MiB of memory when full; the limit is the host's, set it outside of containers
conntrack-full-persistence-host = the same in a file of /etc/sysctl.d of the host
# A comment behind commands.
conntrack-full-namespace = on the host itself, not in its container
conntrack-full-remedy-days = Forget dead connections sooner: after an hour instead of { $days ->
    [one] one day
   *[other] { $days } days
 }
conntrack-full-remedy-minutes = Forget dead connections sooner: after an hour instead of { $minutes } minutes
conntrack-full-persistence-memory = `{ $setting }` in /etc/sysctl.d/90-wirespeed.conf
conntrack-full-risk-memory = connections that are silent for longer lose their NAT mapping and their state
