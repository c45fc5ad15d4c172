# What the terminal shows of a record.

# Verdicts and words.
report-word-healthy = healthy
report-word-unmeasured = unmeasured
report-word-watched = watched
report-word-findings = { $count ->
    [one] 1 finding
   *[other] { $count } findings
 }
report-word-slow = slow
report-word-too-slow = too slow
report-word-incomplete = incomplete
report-word-not-comparable = not comparable
report-word-ended-early = ended early
report-word-nothing-tried = nothing tried
report-word-nothing-kept = nothing kept
report-word-kept = { $count } kept
report-not-known = not known
report-not-known-because = not known: { $reason }
report-not-measured = Not measured
report-not-measured-because = not measured: { $reason }
report-not-set = not set
report-here = here
report-far = far
report-far-end = far end

# Something, and what is said of it.
report-told = { $what }: { $text }
report-and = { $one }; { $other }

# What a tunnel carries. $load is `upload`, or `upload, 10 streams`; $carried and $said are one of these.
report-carried = the tunnel carries { $share } of the road's { $road } ({ $load })
report-carried-alone = the tunnel carries { $rate } ({ $load }); the road itself was not measured
report-carried-nothing = next to nothing of a bulk transfer gets through the tunnel ({ $direction }), while the road carries { $road }
report-load = { $direction }, { $streams } streams
report-exchanges-carried = the tunnel makes { $share } of the road's { $road } new connections per second ({ $at_once } at once)
report-exchanges-carried-alone = the tunnel makes { $tunnel } new connections per second ({ $at_once } at once); the road itself was not measured
report-watched-for = watched for { $time } without a load: { $received } in and { $sent } out
report-watched-unread = watched for { $time } without a load: the tunnel's counters could not be read

# The answer in one sentence.
report-tunnel-to = { $interface } (to { $far })
report-said = { $tunnel }: { $said }.
report-healthy = { $tunnel }: { $carried }. Nothing is wrong with it.
report-healthy-unmeasured = { $tunnel }: nothing wrong was found.
report-watched = { $tunnel }: { $said }; nothing wrong shows.
report-too-little = { $tunnel }: { $carried }. Nothing was found, but that is too little to call it healthy: see Not checked.
report-one-way = { $tunnel }: nothing was found, but not every direction could be measured.
report-no-way = { $tunnel }: nothing could be measured, and nothing was found without measuring.
report-never-met = The tunnel does not stand yet: its ends have never shaken hands, so nothing goes through it. Is the other end up, does each end have the other's public key, and does one of them know the other's Endpoint?
report-never-met-at = The tunnel does not stand yet: its ends have never shaken hands, so nothing goes through it. Is the other end up, does each end have the other's public key, and does UDP reach { $endpoint } through the firewalls?
report-name-the-far-end = To have the tunnel measured, name its other end, with wirespeed installed there, too:
report-name-a-server = Or, with nothing there but an iperf3 server, which tells less:
report-its-host = HOST
report-this-machine = here
report-test-slow = { $tunnel }: { $carried }. `wirespeed doctor` finds out why.
report-test-nothing = { $tunnel }: nothing could be measured.
report-details = -v shows every figure behind this.

# Findings.
report-by-hand-more = { $count ->
    [one] { $title } (-v shows its command)
   *[other] { $title } (-v shows its { $count } commands)
}
report-commands-too-long = { $count ->
    [one] one command, too long to show here (--json has it)
   *[other] { $count } commands, too long to show here (--json has them)
}
report-severity-critical = critical
report-severity-warning = warning
report-severity-info = info
report-place = on { $host }, { $sure } sure
report-place-direction = on { $host }, { $direction }, { $sure } sure
report-evidence = { $what }: { $values } ({ $place })
report-asked = Also measured, to tell causes apart: { $all }.
report-refused = Would not help here
report-not-checked = Not checked
report-more = and { $left } more (-v shows them).

# Where a command is to be typed, in a comment behind it.
report-typed-on = on { $host }

# Labels, at most nine letters where they stand in a column.
report-label-explains = explains
report-label-evidence = evidence
report-label-fix = fix
report-label-remedy = remedy
report-label-keep = to keep
report-label-undo = undo
report-label-risk = risk
report-label-useless = useless
report-label-by-hand = by hand
report-label-more = more
report-label-note = note
report-label-failed = failed
report-label-no-end = no end
report-label-first = first
report-label-change = change
report-label-measured = measured
report-label-guard = guard
report-label-why = why
report-label-on = on
report-label-keep-it = keep it
report-label-put-it-back = put it back
report-label-kernel = kernel
report-label-device = device
report-label-peer = peer
report-label-peers = peers
report-label-rtt-road = idle RTT, road
report-label-rtt-tunnel = idle RTT, tunnel
report-label-path-mtu = path MTU
report-label-sizes = inside the tunnel
report-label-congestion = congestion
report-label-datagrams = datagrams
report-label-segmentation = segmentation

# Tables.
report-streams = streams
report-road = road
report-tunnel = tunnel
report-share = share
report-should = should
report-hop = hop
report-pair = pair
report-interval = 95 % interval
report-loaded-rtt = RTT under load
report-no-tunnel = no tunnel
report-comparison = { $direction } { $protocol }, { $streams ->
    [one] { $streams } stream
   *[other] { $streams } streams
 }

# Samples.
report-sample-stalled = stalled
report-sample-ran = ran { $time }
report-sample-retransmits = { $count ->
    [one] { $count } segment sent again
   *[other] { $count } segments sent again
 }
report-sample-lost = { $share } lost
report-sample-died = { $count ->
    [one] { $count } stream died
   *[other] { $count } streams died
 }
report-sample-rtt = RTT { $rtt }
report-sample-core-here = busiest core here { $share }
report-sample-core-far = busiest core far { $share }
report-sample-drops-here = { $count ->
    [one] { $count } socket drop here
   *[other] { $count } socket drops here
 }
report-sample-drops-far = { $count ->
    [one] { $count } socket drop far
   *[other] { $count } socket drops far
 }
report-rtt = { $min } min, { $median } median, { $high } at 95 %
report-rtt-none = { $sent ->
    [one] no reply to { $sent } request
   *[other] no reply to { $sent } requests
 }

# Over time. $full stands for the top of the scale, $gap for what was not measured.
report-over-time = Throughput over time
report-over-time-tunnel = The tunnel over time, on the scale of the road
report-over-time-rate = throughput
report-over-time-window = congestion window
report-over-time-direction = throughput, { $direction }
report-over-time-without = without
report-over-time-with = with
report-over-time-scale = { $full } is { $most }, each character { $step }
report-over-time-of = { $span } of { $most }
report-over-time-top = { $full } is the most of road and tunnel, each character { $step }.
report-over-time-parted = Warm-ups are left out; a space parts two loads.
report-over-time-whole = Warm-ups are left out.
report-over-time-gap = Marked { $gap }: time without a measurement.

# Probes.
report-probes = Probes
report-size-passed = { $size } bytes passed
report-size-passed-nothing = nothing passed
report-size-failed = { $size } did not
report-size-all = everything up to the MTU
report-size-reported = the road reported { $mtu }
report-size-silent = and no error came back
report-trial = { $direction }: { $tried } instead of { $current }: { $gain } ({ $low } to { $high })
report-datagrams-road = { $direction }, road: { $sent } of { $payload } bytes at { $rate }: { $lost } lost, { $disordered } out of order
report-datagrams-tunnel = { $direction }, tunnel: { $sent } of { $payload } bytes at { $rate }: { $lost } lost, { $disordered } out of order
report-segmentation = { $direction }: of { $sent } sent one by one { $arrived } arrived, of { $trains_sent } sent in trains { $trains_arrived }
report-segmentation-refused = the kernel refused trains: { $why }

# Machines.
report-cores = { $count ->
    [one] { $count } core
   *[other] { $count } cores
 }
report-by-kernel = { $name }, MTU { $mtu }, carried by the kernel's WireGuard
report-by-program = { $name }, MTU { $mtu }, carried by { $program } (userspace)
report-by-userspace = { $name }, MTU { $mtu }, carried by a userspace WireGuard
report-device-workers = { $count ->
    [one] 1 worker
   *[other] { $count } workers
 }
report-device-without = without { $offload } ({ $state })
report-device-dropped = dropped { $count } ({ $reason })
report-peer-nowhere = no endpoint
report-peer-heard = last handshake { $age } ago
report-peer-never-heard = never a handshake
report-peer-allowed = allowed IPs { $ips }
report-peer-allowed-none = allowed IPs none
report-peers-more = { $count } more

# A watch.
report-in = in
report-out = out
report-connections = connections
report-sent-again = sent again
report-busiest-core = busiest core
report-heard = The last handshake with the peer was { $age } ago.
report-heard-silent = The last handshake with the peer was { $age } ago; { $sent } were sent to it in the last { $time }, and nothing came back.
report-never-heard = There never was a handshake with the peer.
report-never-heard-silent = There never was a handshake with the peer; { $sent } were sent to it in the last { $time }, and nothing came back.

# A search for the highest rate.
report-sweep = Rates tried, { $direction }
report-sweep-cap = cap
report-sweep-uncapped = none
report-sweep-goodput = goodput
report-sweep-variation = varies by
report-sweep-rtt = RTT at 95 %
report-sweep-stable = stable
report-sweep-found = the highest cap that stays stable is { $cap } (capped by { $by }).
report-sweep-none = no cap that was tried stays stable (capped by { $by }).

# Chains of hops.
report-hops-next = the next machine
report-hops-doctor = The doctor on the hop from { $from } to { $to }
report-hops-nothing = Nothing could be measured.
report-hops-all = all
report-hops-all-together = all together
report-hops-no-rule = no rule

# Short exchanges.
report-exchanges = Short exchanges, { $at_once } at once
report-exchanges-sizes = Short exchanges, { $at_once } at once, { $request } asked and { $response } answered
report-exchanges-rate = new per second
report-exchanges-completed = completed
report-exchanges-failed = failed
report-exchanges-connect = connect
report-exchanges-first-byte = first byte
report-exchanges-total = total
report-exchanges-longest = longest
report-exchanges-share = Through the tunnel { $share } of the road's new connections per second; with 95 % confidence between { $low } and { $high }.
report-exchanges-times = { $side }: { $reason }, { $times ->
    [one] once
   *[other] { $times } times
 }
report-exchanges-cut-off = under way when the sample's time was over
report-exchanges-not-begun = not begun in time
report-exchanges-at-connect = connect: { $why }
report-exchanges-at-answer = answer: { $why }
report-exchanges-timed-out = timed out
report-exchanges-connection-timed-out = connection timed out
report-exchanges-closed-early = closed early
report-exchanges-more-than-asked = more than was asked for
report-exchanges-refused = connection refused
report-exchanges-reset = connection reset by peer
report-exchanges-broken-pipe = broken pipe
report-exchanges-no-route = no route to host
report-exchanges-unreachable = network is unreachable
report-exchanges-network-down = network is down
report-exchanges-no-port = no free local port
report-exchanges-no-files = no more open files
report-exchanges-no-buffers = no buffer space available
report-exchanges-denied = permission denied
report-exchanges-not-permitted = operation not permitted

# Against an earlier record.
report-against = Against the earlier record
report-against-nothing = The two records have no comparison in common.
report-against-share-then = share then
report-against-tunnel-then = tunnel then
report-against-now = now
report-against-machines = What differs in the machines:
report-against-unclear = no clear change
report-against-better = better
report-against-worse = worse
report-fact-kernel = kernel
report-fact-system = system
report-fact-cpu = CPU
report-fact-cores = online cores
report-fact-governor = governor
report-fact-program = program { $name }
report-fact-mtu = { $link } MTU
report-fact-qdisc = { $link } qdisc
report-fact-feature = { $link } { $feature }
report-fact-on = on
report-fact-off = off
report-fact-implementation = tunnel implementation
report-fact-by-kernel = kernel
report-fact-by-program = userspace, { $program }
report-fact-by-userspace = userspace, program not known
report-fact-buffer = tunnel { $family } socket receive buffer
report-fact-rules = firewall rules
report-fact-absent = absent

# Tunes. $left is one of report-tune-left…
report-tune-recovered = { $host }: left by an earlier tune: { $what }
report-tune-not-tried = Not tried
report-tune-left = left: { $codes }
report-tune-left-nothing = nothing is left to mend
report-tune-left-unknown = what is left could not be told for sure
report-tune-nothing-tried = on { $interface }; { $left }.
report-tune-nothing-kept = of { $tried ->
    [one] 1 remedy tried on { $interface }
   *[other] { $tried } remedies tried on { $interface }
 }: everything is as it was; { $left }.
report-tune-kept = of { $tried ->
    [one] 1 remedy tried on { $interface }
   *[other] { $tried } remedies tried on { $interface }
 }, proved by the measured gain; { $left }.
report-tune-confirm = Everything is put back in { $time } unless you confirm it:
report-tune-confirmed = The changes are confirmed. They last until the next restart.
report-keep-all = To keep them over a restart
report-tune-unchanged = nothing was changed by a tune
report-stage-before = before
report-stage-after = after { $what }
report-experiment-kept = kept
report-experiment-put-back = put back
report-experiment-gain = { $what } { $before } → { $after }, gain { $gain } (95 %: { $low } to { $high })
report-goal-goodput = goodput
report-guard-held = held
report-guard-not-comparable = not comparable: another load before
report-put-back = { $setting } is again { $before }
report-put-back-changed = { $setting } was changed by somebody else meanwhile and stays as it is ({ $now }); it was { $before }
report-put-back-gone = { $setting } is gone, and the change with it
report-put-back-failed = { $setting } could not be put back to { $before }: { $why }
report-state-idle = no tune since the last restart
report-state-at-work = a tune is at work (process { $process })
report-state-kept = changes wait to be confirmed; put back in { $time }
report-state-confirmed = changes are confirmed; `wirespeed tune undo` still puts them back
report-state-undone = put back: { $why }
report-change-now = { $change }, now { $now }
report-change-now-unknown = { $change }, now not known
report-plan-nothing = Nothing to do.
report-setting-mtu = MTU of { $interface }
report-setting-buffer = receive buffer of { $interface }'s socket
report-setting-congestion = congestion control of the routes by { $interface }
report-setting-shaper = rate limit of { $interface }
report-setting-ring = receive ring of { $interface }
report-setting-interrupt = cores of interrupt { $interrupt }
report-setting-governor = frequency governor
report-setting-napi = threaded NAPI of { $interface }
report-setting-offload = { $feature } of { $interface }

# The demonstration.
report-demo-as-it-was = as it was
report-demo-shaped = shaped to { $rate }
report-demo-buffers = UDP buffers 25 MB
report-demo-stages = Stage by stage, beside a published case of the same kind
report-demo-published = published
report-demo-there = there
report-demo-reached = The road can carry { $possible } of payload through this tunnel each way; reached: { $reached } of it in the worse direction.
report-demo-reached-unknown = How much of its road the mended tunnel carries is not known.
report-demo-knobs = Every knob, as the machines say themselves
report-demo-knob = knob
report-demo-tuned = tuned
report-demo-undone = after undo
report-demo-put-back = Everything is as it was before.
report-demo-not-put-back = NOT everything is as it was before.
report-demo-end = Nothing is left of the practice road. All this took { $time }.
report-demo-left = Still there of the practice road: { $left }.
