# What the measurements say of themselves.

measure-here = this machine
measure-far-end = the far end
measure-what-exchanges = many short exchanges
measure-what-segmentation = segmentation of datagrams
measure-what-order = the order of numbered datagrams
measure-what-watch = what flows by itself
measure-what-path-mtu = path MTU
measure-what-sizes = sizes inside the tunnel
measure-what-idle = who answers over the idle tunnel
measure-what-download = the direction from the far end to us
measure-what-address-outside = the far end's address outside
measure-what-address-inside = the far end's address inside
measure-far-needed = wirespeed has to run at the far end, too (--far ssh://…)
measure-far-not-there = wirespeed does not run there (--far ssh://…)
measure-unheard = no datagram passed between us and { $to } (UDP) and back; does a firewall let that port through?
measure-no-echo = { $to } answered no echo request of any size
measure-translated = we are behind address translation (seen there as { $seen })
measure-own-address-unknown = our address outside the tunnel is not known
measure-no-address-of-family = our tunnel interface has no address of the far end's family
measure-never-outside = all that { $machine } sends to { $to } goes through a tunnel itself; give another --bare-address, or a route of its own to { $to } there
measure-no-endpoint = the peer has no endpoint and the far end could not tell; give --bare-address
measure-no-single-address = the peer has no single address among its allowed IPs; give --tunnel-address
measure-name-without-address = the name has no address
measure-handshake-age = the last handshake was { $seconds } s ago
measure-handshake-never = there was never a handshake
measure-peer-gone = the peer is gone
measure-endpoint-answers = its host { $host } answers outside the tunnel
measure-endpoint-silent = its endpoint { $endpoint } does not answer outside the tunnel either
measure-endpoint-none = it has no endpoint
measure-rate-needs = a rate needs wirespeed at the far end (--far ssh://…), and an address of ours it can reach
measure-load-limits = a load has 1 to 128 streams and lasts up to 600 s
measure-no-report = it left no report
measure-iperf3-said = iperf3 said: { $words }
measure-iperf3-ended = iperf3 ended after { NUMBER($seconds, minimumFractionDigits: 1) } s: { $words }
measure-not-begun = the test did not begin within { NUMBER($seconds, minimumFractionDigits: 1) } s
measure-bare-stalled = the bare path stalled: nothing arrived
measure-no-exchange-outside = no exchange was completed outside the tunnel ({ $why })
measure-no-reason = no reason

# Loads, in words.
measure-load-outside = { $direction } outside the tunnel with { $streams ->
    [one] one stream
   *[other] { $streams } streams
 }
measure-load-through = { $direction } through the tunnel with { $streams ->
    [one] one stream
   *[other] { $streams } streams
 }
measure-whole-chain = the whole chain
measure-other-tunnels = the other tunnels between { $from } and { $to } ({ $others })
measure-other-tunnels-because = only { $taken } was, which has carried most
measure-idle-hop = idle round trip, { $from } to { $to }
measure-idle-chain = idle round trip, the whole chain
measure-load-chain = the whole chain, { $direction }
measure-load-bare = { $from } to { $to } outside the tunnel, { $direction }
measure-load-tunnel = { $from } to { $to } through the tunnel, { $direction }

# What is being done.
measure-step-compare = { $direction }, { $streams ->
    [one] one stream
   *[other] { $streams } streams
 }: pair { $pair }
measure-step-pair = pair { $pair } of { $pairs }
measure-step-exchanges = { $at_once } connections at once, pair { $pair } of { $pairs }
measure-step-cap = a cap of { NUMBER($rate, minimumFractionDigits: 3) } Mbit/s
measure-step-no-cap = without a cap
measure-tcp-pacing = TCP pacing
measure-step-watching = watching

# Remarks on a comparison.
measure-remark-wide = after { $pairs } pairs the interval is still wide
measure-remark-stalled = the tunnel stalled in all of { $samples } samples; more were not taken
measure-remark-no-exchange = no exchange was completed through the tunnel in { $samples } samples; more were not taken
measure-remark-prolonged = the sender's window still swings: samples prolonged to { $seconds } s
measure-remark-few-pairs = time for { $taken } of at least { $least } pairs only
measure-remark-time-spent = time was spent before the interval was narrow
measure-remark-one-pair = one pair only: the ratio has no interval
measure-remark-short = samples of { NUMBER($seconds, minimumFractionDigits: 1) } s are short for a round trip of { $milliseconds } ms

# Why something could not be measured.
measure-listed-none = none
measure-listed-more = { $told } and { $more } more
measure-no-such-interface = { $machine } has no WireGuard interface { $interface }; it has { $known }
measure-which-interface = { $count ->
    [0] name the WireGuard interface to look at: { $machine } has none
   *[other] name the WireGuard interface to look at: { $machine } has { $known }
 }
measure-not-neighbours = { $here } and { $far } share neither a WireGuard tunnel nor a network; name the machines in the order in which the traffic passes them
measure-interface-down = { $interface } on { $machine } is down; bring it up first (ip link set { $interface } up, or wg-quick up { $interface })
measure-interface-gone = { $interface } on { $machine } has gone since the measurement began: renamed or deleted; what was measured meanwhile counts for nothing; run the command again with the interface there is now
measure-peers-unknown = the peers of { $interface } on { $machine } could not be read: { $because }; run wirespeed as root there (sudo)
measure-daemon-not-asked = could not ask the daemon behind { $socket }: { $why } (is it running, and are you root?)
measure-daemon-silent = the daemon behind { $socket } gave no whole answer within 1 s
measure-daemon-endless = the daemon behind { $socket } answered more than 32 MiB
measure-daemon-refused = the daemon refused to describe the device: errno { $errno }
measure-kernel-refused = the kernel refused to tell its WireGuard devices: { $why }
measure-not-permitted = Operation not permitted (os error 1)
measure-no-such-file = No such file or directory (os error 2)
measure-permission-denied = Permission denied (os error 13)
measure-connection-refused = Connection refused (os error 111)
measure-no-peers = { $interface } on { $machine } has no peers; add one (wg set { $interface } peer KEY …)
measure-which-peer = { $interface } on { $machine } has { $count } peers; choose one with --peer KEY: { $peers }
measure-no-such-peer = { $interface } on { $machine } has no peer { $peer }; it has { $peers }
measure-wrong-far-end = { $far } has no WireGuard device with the key of a peer of { $interface } on { $here }, and our key as its peer; is --far the other end of this tunnel?
measure-no-address = { $what } of the tunnel { $interface } on { $machine } is not known: { $because }
measure-nothing-far = no load can be run: nothing is at the far end; give --far ssh://… or --far iperf3://…
measure-no-iperf3 = iperf3 could not be started on { $machine }: { $because }; install it there (apt-get install iperf3)
measure-no-connection = { $machine } could not connect to the iperf3 server { $server }: { $because }; is a firewall between them, does it listen?
measure-server-busy = the iperf3 server { $server } was busy with another test for { $seconds } s; try again later
measure-load-failed = the { $load } did not run on { $machine }: { $because }
measure-probe-failed = { $what } could not be probed from { $machine }: { $because }
measure-tunnel-silent = { $interface } on { $machine }: peer { $peer } does not answer through the tunnel; { $because }; is it up at the other end, and its port reachable?
measure-stopped = stopped before the measurement was done

# Why a machine could not be reached.
reach-program-missing = { $machine }: could not run { $program } there ({ $detail }); { $advice }
reach-install-there = install the same wirespeed there, where ssh finds it (its package, or a copy of this program in /usr/local/bin), or say where it is (--far-program)
reach-install-again = install it again, or say where it is
reach-host-key = { $machine }: ssh does not trust the host key ({ $detail }); compare the key, then run ssh to that host once by hand to accept it (under sudo: sudo ssh)
reach-login = { $machine }: ssh was not let in ({ $detail }); wirespeed never asks for a password: set up a key or an agent so that ssh to that host works by itself (under sudo it is root's ssh, with root's keys)
reach-unreachable = { $machine }: ssh did not get there ({ $detail }); check address, port and firewall with ssh by hand
reach-version = { $machine }: runs wirespeed { $theirs } (protocol { $their_protocol }), this is wirespeed { $ours } (protocol { $our_protocol }); install the same version on both machines
reach-timed-out = { $machine }: { $operation } gave no answer within { NUMBER($seconds, minimumFractionDigits: 1) } s{ $detail }
reach-not-called = { $machine }: { $operation } was not called: { $detail }
reach-answer = { $machine }: { $operation } answered in a form this wirespeed does not know: { $detail }

# Why a text is no place to go to. The part is namespace, user or host.
reach-not-started = { $machine }: { $reason }
reach-no-namespace = there is no network namespace { $name } on this machine ({ $detail }); `ip netns list` shows those there are
reach-needs-root = entering the network namespace { $name } needs root ({ $detail }); run wirespeed as root
reach-no-program = { $program } was not found on this machine; install { $package }
reach-program-not-run = { $program } could not be run: { $detail }
reach-no-thread = this machine gave no thread to talk to it with: { $detail }; end other programs first
reach-no-ssh-command = no ssh command was given to reach it with
reach-iperf3-answers-nothing = an iperf3 server can carry loads, but no wirespeed can be asked there; for what the far end knows, give --far ssh://[user@]host
reach-no-place = { $place } is not a place wirespeed can go to: { $reason }; write here, netns:NAME, ssh://[user@]host[:port] or iperf3://host[:port]
reach-place-unknown-way = it begins with none of the known ways
reach-place-open-bracket = the bracket before the address is not closed
reach-place-behind-bracket = only a port may follow the bracket
reach-place-no-brackets = an IPv6 address stands in brackets, such as [fd00::1]
reach-place-no-port = { $text } is not a port
reach-place-port-zero = there is no port 0
reach-place-namespace-path = a namespace is a name, not a path
reach-place-missing = the { $part } is missing
reach-place-like-an-option = a { $part } that begins with - would be taken for an option
reach-place-too-long = the { $part } is longer than { $most } bytes
reach-place-character = { $character } can't be part of a { $part }
