softirq-budget-title = The kernel takes too few packets at a time
softirq-budget-because = { $cut } of { $rounds } rounds of receiving were cut short before the queues were empty, { $lost } packets were lost meanwhile, and no core was full.
softirq-budget-line-rounds = NET_RX rounds (/proc/softirqs), and those cut short (softnet_stat column 3), { $direction }
softirq-budget-line-lost = packets received and lost meanwhile, { $direction }
softirq-budget-line-busiest = busiest core, { $direction }
softirq-budget-remedy = { $packets } packets and { NUMBER($milliseconds, minimumFractionDigits: 1, maximumFractionDigits: 1) } ms for each round of receiving, for the whole host
softirq-budget-risk = programs wait longer for a core while packets come in: up to { NUMBER($milliseconds, maximumFractionDigits: 0) } ms at a time
softirq-budget-persistence = `{ $packets }` and `{ $time }` in /etc/sysctl.d/90-wirespeed.conf
softirq-budget-remedy-hidden = Twice as many packets and twice the time for each round of receiving, for the whole host
softirq-budget-risk-hidden = programs wait longer for a core while packets come in: up to { $time } microseconds at a time
softirq-budget-persistence-hidden = what `{ $command }` says then, in /etc/sysctl.d/90-wirespeed.conf of the host
softirq-budget-refused-weight = a larger net.core.dev_weight
softirq-budget-refused-why-weight = it counts for the backlog queue alone; drivers poll their rings 64 packets at a time whatever it says (process_backlog and netif_napi_add, net/core/dev.c)
softirq-budget-refused-why-time-stamps = it only moves the time stamp of a packet behind RPS, where something asks for time stamps at all (net_timestamp_check, net/core/dev.c)
# A comment behind a command.
softirq-budget-namespace = in the host's own namespace
