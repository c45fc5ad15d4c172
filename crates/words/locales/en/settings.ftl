# The knobs that are turned: what each is, and how its value is kept over a reboot.

settings-link-mtu = { $interface } mtu
settings-link-mtu-persistence = `MTU = { $value }` under [Interface] in /etc/wireguard/{ $interface }.conf (wg-quick); where another owns the link: `MTUBytes={ $value }` under [Link] in the .network file of systemd-networkd, or `nmcli connection modify { $connection } wireguard.mtu { $value }` with NetworkManager
settings-socket-receive-buffer = { $interface } socket receive buffer
settings-socket-receive-buffer-persistence = `net.core.rmem_default = { $value }` and `net.core.rmem_max = { $value }` in /etc/sysctl.d/90-wirespeed.conf: host-wide, and the daemon takes it at its next start; or a daemon that sets its own buffers
settings-route-congestion = { $interface } routes congestion control
settings-route-congestion-persistence = `PostUp = { $command }` in /etc/wireguard/{ $interface }.conf (and the same with `ip -6` for IPv6)
settings-egress-shaper = { $interface } egress shaper
settings-egress-shaper-persistence = `PostUp = { $command }` in /etc/wireguard/{ $interface }.conf, or [TokenBucketFilter] / [CAKE] in the .network file of systemd-networkd where it owns the link
settings-nothing-to-keep = nothing to keep
settings-receive-ring = { $interface } receive ring
settings-receive-ring-persistence = `RxBufferSize={ $value }` under [Link] in a .link file of systemd that matches the card (/etc/systemd/network/10-{ $interface }.link; systemd.link(5)), or `ethtool -G` in its ifup script
settings-interrupt-cores = cores of interrupt { $number }
settings-interrupt-cores-persistence = `{ $command }` at each start, where the number is looked up by its name in /proc/interrupts (numbers change); and where irqbalance runs, `IRQBALANCE_ARGS=--banirq={ $number }` in /etc/default/irqbalance, else it moves it again
settings-governor = frequency governor of the processor
settings-governor-persistence = `GOVERNOR="{ $governor }"` in /etc/default/cpufrequtils (package cpufrequtils), or a profile of tuned; cpupower's service has `governor='{ $governor }'` in /etc/default/cpupower
settings-threaded-napi = { $interface } threaded NAPI
settings-threaded-napi-persistence = `PostUp = echo { $value } > /sys/class/net/%i/threaded` under [Interface] in /etc/wireguard/{ $interface }.conf (wg-quick)
settings-link-offload = { $interface } { $feature }
settings-link-offload-persistence = a line `ethtool -K { $interface } { $feature } { $value }` that runs when the link comes up: `post-up` in /etc/network/interfaces, a script in /etc/networkd-dispatcher/routable.d, or `nmcli connection modify { $interface } ethtool.feature-{ $feature } { $value }` with NetworkManager; systemd's .link files know the more common features
settings-sysctl = sysctl { $name }
settings-sysctl-persistence = `{ $name } = { $value }` in /etc/sysctl.d/90-wirespeed.conf, then `sysctl --system`
