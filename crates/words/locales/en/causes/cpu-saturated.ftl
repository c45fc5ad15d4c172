cpu-saturated-title = A machine has no processor time left
cpu-saturated-because = All cores together are { $busy } busy while the tunnel is loaded: there is no processor left to carry more.
cpu-saturated-because-mostly = All cores together are { $busy } busy while the tunnel is loaded, most of it { $process }: there is no processor left to carry more.
cpu-saturated-because-busiest = All cores together are { $busy } busy while the tunnel is loaded, the busiest process being { $process } with { NUMBER($used, minimumFractionDigits: 1, maximumFractionDigits: 1) } of { $cores ->
    [one] { $cores } core
   *[other] { $cores } cores
 }: there is no processor left to carry more.
cpu-saturated-one-machine = { $here } and { $far } (one machine)
cpu-saturated-line-many = all cores with one connection and with many, { $direction }
cpu-saturated-line-process = processor time of { $process }, { $direction }
cpu-saturated-remedy = Less work per byte: offloads on, fewer firewall rules; then hardware
cpu-saturated-remedy-userspace = Less work per byte: offloads on, fewer firewall rules, the kernel's WireGuard where the kernel has it; then hardware
cpu-saturated-risk-userspace = changing the implementation interrupts the tunnel for some seconds
cpu-saturated-unknown-watched = the cores of { $host } were { $busy } busy while watched; whether that holds the tunnel back is not known without a load
cpu-saturated-unknown-stalled = the tunnel stalls, so its loads say nothing of the processors
cpu-saturated-unknown-time = processor time of { $host } during the loads is not known
cpu-saturated-unknown-load = how busy the processors get
