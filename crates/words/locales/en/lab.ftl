# Practice roads.

lab-none = none
lab-nothing = nothing
lab-step-hosts = hosts
lab-step-cables = cables and routes
lab-step-road = road
lab-step-tunnel = tunnel
lab-step-handshake = first handshake
lab-step-twice = fault: the same allowed IPs twice
lab-step-quota = fault: little processor time for a daemon
lab-step-job = fault: { $what }
lab-step-silence = fault: { $idle } of silence
lab-the-road = the road
lab-the-tunnel = the tunnel
lab-from-to = { $what } from { $from } to { $to }
lab-job-work = other work for the processor
lab-job-slow = a program that takes connections slowly
lab-job-crowd = a crowd that wants more
lab-job-host = a host that transfers are made with
lab-job-transfers = transfers in both directions, one after the other
lab-job-away = the other end goes away in { $after }
lab-note-unseen = { $sysctl } of the host can't be seen from here, so hosts may be left with the congestion control they were born with
lab-note-no-such-control = this kernel has no congestion control `{ $name }`; it has { $available }
lab-note-unset = { $sysctl } of the host can't be set ({ $error }), so hosts keep the congestion control they were born with
lab-note-left-behind = its maker died and left it behind; `wirespeed lab down` removes it
lab-note-no-namespace = { $host } has no namespace (any more)
lab-note-silent-daemon = the daemon of { $interface } does not answer
lab-note-keeps-control = { $host } keeps congestion control { $kept }: { $why }

lab-error-unknown-scenario = there is no scenario `{ $name }` and no such file; shipped are: { $known }
lab-error-not-root = a lab makes network namespaces, which only root may: run this as root (sudo)
lab-error-program-missing = the program `{ $program }` is not installed here: apt-get install { $package }
lab-error-no-tun = /dev/net/tun is missing here, so no userspace tunnel and no road emulator can run: modprobe tun
lab-error-no-implementation = the tunnel implementation `{ $name }` can't be used here: { $why }
lab-error-bad-id = `{ $id }` is no lab identifier: use 1 to 8 lower-case letters and digits
lab-error-taken = there is already a lab `{ $id }`: take it down first (wirespeed lab down { $id }), or choose another name
lab-error-no-such-lab = there is no lab `{ $id }`; running: { $running }
lab-error-busy = lab `{ $id }` is just being made by process { $pid }: wait for it, or end it
lab-error-no-such-host = lab `{ $id }` has no host `{ $host }`; hosts are { $known }
lab-error-no-traffic = { $what } did not work within { $seconds } s in lab `{ $id }`: { $detail }
lab-error-left-over = lab `{ $id }` could not be taken down completely: { $left }; run `wirespeed lab down { $id }` again
lab-error-cancelled = ended on request; everything of this lab was taken down
lab-error-machine = sysctl { $sysctl } of this machine was set to { $now } by lab { $by }, and this lab needs { $wanted }: take that one down first (wirespeed lab down { $by })
lab-error-scenario = scenario { $origin }: { $why }; name one that `wirespeed lab list` shows, or write a file like the one in docs/lab.md
lab-error-unknown-implementation = `{ $name }` is no tunnel implementation: use kernel, wirespeed, wireguard-go, or the path of a program that speaks the standard UAPI

# What is wrong with a file of a scenario.
lab-scenario-toml = the file is no TOML of a scenario: { $words }
lab-scenario-toml-at = line { $line }, column { $column }: { $words }
lab-scenario-at = { $key }: { $why }
lab-scenario-file = it is not a file of at most { $most } bytes
lab-scenario-name = name = { $name }: use up to 40 lower-case letters, digits and hyphens
lab-scenario-code = `{ $code }` is no code of a cause
lab-scenario-only-hub = only the topology `hub` has one
lab-scenario-second-nat = only the first road may translate addresses
lab-scenario-inside = `inside` is not for a hub, nor over a road with a NAT
lab-scenario-quota = `daemon_quota` is outside 0.01 to 64 cores
lab-scenario-host = there is no `{ $host }` here; hosts are all, { $known }
lab-scenario-udp-timeout = `udp_timeout` is less than a second
lab-scenario-control = `{ $name }` is no congestion control
lab-scenario-sysctl-not-own = sysctl `{ $name }` does not start with `net.`, so it is not the namespace's own
lab-scenario-sysctl = sysctl `{ $name }` is not one of those a lab may change: { $known }
lab-scenario-no-number = sysctl `{ $name }` = `{ $value }` is no number
lab-scenario-echo-requests = `echo_requests` must be at least 1 a second
lab-scenario-rules = `firewall_rules` is more than { $most }
lab-scenario-needs = `{ $key }` needs `{ $other }`
lab-scenario-needs-share = `{ $key }` needs a share: `{ $share }`
lab-scenario-feature = `{ $name }` is no feature of an interface
lab-scenario-queue = `queue` needs a `rate`: without a bottleneck nothing queues
lab-scenario-mtu = `mtu` is larger than the MTU of the links
lab-scenario-delay = `delay` is 10 s or more
lab-scenario-late = `reorder_by` or `duplicate_by` is 2 s or more
lab-scenario-either = either `collapse_above` or `collapse_udp_above`
