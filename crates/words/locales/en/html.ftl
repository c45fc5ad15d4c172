# The report for a browser.

html-kind-test = Test
html-kind-doctor = Diagnosis
html-kind-tune = Tuning
html-kind-hops = Hop by hop
html-far = far end
html-road = road
html-tunnel = tunnel
html-without = without the change
html-with = with it

# The answer.
html-healthy = Healthy
html-slow = Too slow
html-unmeasured = Unmeasured
html-incomplete = Incomplete
html-watched = Watched
html-findings-count = { $count ->
    [one] { $count } finding
   *[other] { $count } findings
}
html-nothing-wrong = Nothing is wrong with it.
html-nothing-shows = Nothing wrong shows.
html-nothing-measured = Nothing could be measured.
html-too-little = Nothing was found, but that is too little to call it healthy: see what was not checked.
html-doctor-finds-out = wirespeed doctor finds out why.
html-tile-of = { $tunnel } of the road’s { $bare }
html-tile-no-road = through the tunnel; the road was not measured
html-tile-rtt = Round trip
html-tile-rtt-loaded = idle, and up to { $time } under load
html-tile-rtt-idle = idle, through the tunnel

# Findings.
html-findings = Findings
html-findings-left = What is left
html-severity-critical = critical
html-severity-warning = warning
html-severity-info = info
html-place = on { $host }
html-place-direction = on { $host }, { $direction }
html-sure = { $share } sure
html-explains = This explains, too:
html-evidence = What shows it
html-evidence-what = Counter, file or probe
html-evidence-where = Where
html-evidence-before = Before, or the reference
html-evidence-after = After, or measured
html-fix = Let wirespeed try it
html-fix-note = Tries the remedy, measures with and without it in turn, keeps it only if the gain is proved, and puts everything back if nobody confirms.
html-remedies = { $count ->
    [one] The remedy
   *[other] The remedies, narrowest first
}
html-remedy-by-tune = No command does this: `wirespeed tune` does.
html-remedy-notes = Risk, how to keep it, how to undo it
html-risk = Risk
html-keep = To keep it over a restart
html-undo = To undo it
html-refused = Would not help
html-refused-here = What would not help here
html-read-on = To read on:
html-missing = Not measured, not checked

# Charts.
html-charts = Charts
html-no-chart = No chart.
html-no-loads = no load
html-row-words = { $name }: { $text }.
html-row-detail = { $text } ({ $detail })
html-with-interval = { $value } ({ $low } to { $high })
html-interval = { $low } to { $high }
html-more = { $count ->
    [one] and { $count } more
   *[other] and { $count } more
}
html-shares-title = What the tunnel carries of its road
html-shares-caption = Point: the median over the pairs. Bar: 95 % confidence interval.
html-shares-limit = healthy: { $share }
html-shares-absent = No load was measured both outside the tunnel and through it.
html-shares-absent-because = The road could not be measured: { $why }
html-throughput-title = Throughput: { $what }
html-throughput-words = { $runs ->
    [one] { $side }: one run, { $median }.
   *[other] { $side }: { $runs } runs, median { $median }, between { $low } and { $high }.
}
html-throughput-stalled = { $count ->
    [one] One of them stalled.
   *[other] { $count } of them stalled.
}
html-throughput-absent = No load ran, so there is no throughput to show.
html-caption-step = The runs in the order taken, one point for { $step } s.
html-caption-means = The runs in the order taken. The record has the mean of a run where it has no figures second by second.
html-caption-warm-up = The faint beginning of a run is its warm-up, which does not count.
html-seconds-of-load = seconds of load
html-window-title = Window and segments sent again: { $what }
html-window-panel = Congestion window
html-retransmits-panel = Segments sent again
html-window-words = { $side }: window { $median } in the median, between { $low } and { $high }.
html-retransmits-words = { $count ->
    [one] { $side }: { $count } segment sent again.
   *[other] { $side }: { $count } segments sent again.
}
html-window-unknown = the sender did not tell its window
html-retransmits-unknown = the sender did not tell what it sent again
html-window-absent = The sender told neither its congestion window nor what it sent again; over UDP there is neither.
html-window-absent-no-load = No load ran, so there is no window to show.
html-rtt-title = Round trip, idle and under load
html-rtt-caption = Point: median. Bar: from the smallest to the 95th percentile. Echo requests over the same way as the load.
html-rtt-caption-soaks = The long loads are those of several streams.
html-rtt-idle-road = idle, road
html-rtt-idle-tunnel = idle, tunnel
html-rtt-loaded-road = road, { $what }
html-rtt-loaded-tunnel = tunnel, { $what }
html-rtt-soak-road = road, long { $direction }
html-rtt-soak-tunnel = tunnel, long { $direction }
html-rtt-high = 95 %: { $high }
html-rtt-absent = No echo request was sent.
html-rtt-absent-because = No round trip was measured: { $why }
html-rtt-stage-idle = { $stage }, idle
html-rtt-stage-loaded = { $stage }, under load
html-rtt-stages-caption = Medians through the tunnel; under load, of the worse direction. Echo requests over the same way as the load.
html-rtt-loads-title = Round trip under load: { $what }
html-rtt-loads-absent = No echo request came back during these loads, so there is no round trip to show.
html-rtt-all = { $min } at least, { $median } in the median, { $high } at 95 %
html-rtt-no-reply = { $sent ->
    [one] no reply to { $sent } request
   *[other] no reply to { $sent } requests
}
html-not-known = not known: { $why }
html-heat-title = Cores: { $host }
html-heat-caption = Share of the time that each core (row) was busy during each run (column), all kinds of work together.
html-heat-caption-watched = Share of the time that each core (row) was busy during each slice of the watch (column), all kinds of work together.
html-heat-caption-together = { $count ->
    [one] One run in a column.
   *[other] { $count } neighbouring runs in a column.
}
html-heat-caption-together-watched = { $count ->
    [one] One slice in a column.
   *[other] { $count } neighbouring slices in a column.
}
html-heat-caption-groups = { $count ->
    [one] One more group of runs is not shown.
   *[other] { $count } more groups of runs are not shown.
}
html-heat-caption-cores = The { $shown } busiest of { $count } cores.
html-heat-from = from { $share }
html-heat-words = { $cores ->
    [one] One core, busy up to { $busy } of a run.
   *[other] { $cores } cores. The busiest, core { $core }, was busy up to { $busy } of a run.
}
html-heat-words-watched = { $cores ->
    [one] One core, busy up to { $busy } of a slice.
   *[other] { $cores } cores. The busiest, core { $core }, was busy up to { $busy } of a slice.
}
html-heat-words-group = { $name }: the busiest core { $busy } on the mean.
html-heat-absent = wirespeed did not run there, or no load ran: the cores’ times are not in the record.
html-drops-title = Drops while the tunnel was loaded
html-drops-caption = Packets by the kernel’s counters, all loads through the tunnel together.
html-drops-title-watched = Drops while it was watched
html-drops-caption-watched = Packets by the kernel’s counters, over the whole watch.
html-drops-sockets = UDP sockets
html-drops-name = { $place } on { $host }
html-drops-none = Every counter of drops that was read stood still: nothing was dropped on these machines.
html-drops-absent = No load ran through the tunnel, so no counter was read.
html-sweep-title = Rates tried, { $direction }
html-sweep-title-absent = Rates tried
html-sweep-caption = { $found } Level: the cap. Upright: what arrived. Dotted: all of the cap. Capped by { $by }.
html-sweep-found = The highest cap that stays stable is { $cap }.
html-sweep-none-stable = No cap that was tried stays stable.
html-sweep-no-cap = no cap
html-sweep-stable = stable
html-sweep-unstable = not stable
html-sweep-words-stable = { $cap }: { $goodput } arrive, stable.
html-sweep-words-unstable = { $cap }: { $goodput } arrive, not stable.
html-sweep-absent = No rates were tried: nothing suggested a collapse above some rate, and no sweep was asked for.
html-gains-title = What remedies gain
html-gains-title-goodput = What each remedy gained in goodput
html-gains-title-rtt = By how much each remedy shortened the round trip under load
html-gains-caption = Point: the median over the pairs, with and without in turn. Bar: its 95 % confidence interval. To the right of the dashed line is better.
html-gains-absent = No remedy was tried.
html-gains-absent-doctor = The doctor changes nothing, so no remedy was tried. wirespeed tune tries them and measures the gain.
html-no-gain = no gain
html-trials-title = Other congestion controls, tried on sockets of wirespeed’s own
html-trial-name = { $tried } instead of { $current }, { $direction }
html-helps = helps
html-no-clear-gain = no clear gain
html-watched-title = What flowed through { $interface }
html-watched-in = received
html-watched-out = sent
html-watched-words = { $side }: { $median } in the median, { $high } at most.
html-watched-seconds = seconds
html-watched-absent = The watch has no slices in this record.
html-watched-group = watched, slice by slice

# Tables.
html-measurements = Measurements
html-table-load = Load
html-table-share = Share
html-table-interval = 95 % interval
html-table-pairs = Pairs
html-table-pair = Pair
html-table-rtt-road = Loaded RTT, road
html-table-rtt-tunnel = Loaded RTT, tunnel
html-table-retransmits = Sent again
html-table-direction = Direction
html-every-pair = Every pair
html-probes = Probes
html-probe-nothing = nothing
html-probe-path = path MTU, { $direction }
html-probe-inside = inside the tunnel, { $direction }
html-probe-passed = { $size } passed
html-probe-failed = , { $size } did not
html-probe-reported = , the road reported { $mtu }
html-probe-silent = , and no error came back
html-probe-datagrams = datagrams, { $direction }, { $side }
html-probe-datagrams-text = { $sent } at { $rate }: { $lost } lost, { $late } out of order
html-exchange-intro = { $count ->
    [one] Short exchanges, one at a time, each over a connection of its own.
   *[other] Short exchanges, { $count } at once, each over a connection of its own.
}
html-exchange-rate = New per second
html-exchange-completed = Completed
html-exchange-failed = Failed
html-exchange-p50 = Median time
html-exchange-p99 = 99 %
html-exchange-longest = Longest
html-exchange-ratio = Through the tunnel { $value } of the road’s new connections per second; with 95 % confidence between { $low } and { $high }.

# Machines.
html-machines = Machines
html-machine-system = System
html-machine-kernel = Kernel
html-machine-cpu = Processor
html-machine-cores = { $count ->
    [one] { $count } core
   *[other] { $count } cores
}
html-machine-tunnel = Tunnel
html-machine-tunnel-text = { $name }, MTU { $mtu }, carried by { $by }
html-machine-by-kernel = the kernel’s WireGuard
html-machine-by-program = { $program } (userspace)
html-machine-by-userspace = a userspace WireGuard
html-machine-link = Goes out by
html-machine-link-text = { $name } ({ $driver }), MTU { $mtu }
html-machine-peer = Peer
html-machine-peers = Peers
html-machine-no-endpoint = no endpoint
html-machine-handshake = last handshake { $age } ago
html-machine-no-handshake = never a handshake

# A tune.
html-nothing-tried = Nothing tried
html-nothing-kept = Nothing kept
html-kept-count = { $count ->
    [one] { $count } remedy kept
   *[other] { $count } remedies kept
}
html-tried-count = { $count ->
    [0] No remedy was tried.
    [one] One remedy was tried.
   *[other] { $count } remedies were tried, one at a time.
}
html-nothing-left = Nothing is left to mend.
html-left = Left: { $codes }.
html-left-unknown = What is left could not be told for sure.
html-kept = kept
html-put-back = put back
html-stages = Before and after
html-stage = The tunnel
html-stage-before = before
html-stage-after = after { $code }
html-stage-upload = Upload
html-stage-download = Download
html-stage-rtt = RTT under load
html-experiments = What was tried
html-change = { $what }: { $before } → { $after }
html-change-on = { $host }, { $what }: { $before } → { $after }
html-changes = { $count ->
    [one] { $count } change
   *[other] The { $count } changes
}
html-measured-goodput = Goodput { $before } without it, { $after } with it.
html-measured-rtt = Round trip under load { $before } without it, { $after } with it.
html-measured-gain = Gain { $gain }, with 95 % confidence between { $low } and { $high }.
html-comparisons-not-drawn = { $count ->
    [one] One more comparison is not drawn: the first ones are, and those whose tunnel carries least of its road.
   *[other] { $count } more comparisons are not drawn: the first ones are, and those whose tunnel carries least of its road.
}
html-loads-not-drawn = { $count ->
    [one] The loads of one more experiment are not drawn over time.
   *[other] The loads of { $count } more experiments are not drawn over time.
}
html-guards = What must not get worse
html-guard = Guard
html-guard-held = Held?
html-guard-yes = held
html-guard-no = worse
html-guard-not-comparable = not comparable: another load before
html-guard-loaded-rtt = Round trip under load
html-guard-goodput = Goodput
html-guard-drops = Drops
html-guard-cpu-per-byte = Processor time per byte
html-confirm = Everything is put back { $time } after the tune unless it is confirmed:
html-confirmed = The changes are confirmed. They last until the next restart.
html-how-to-undo = To put everything back:
html-not-tried = Not tried

# Hops.
html-hops = The hops
html-hops-chart = Each hop, outside its tunnel and through it
html-hops-absent = No hop could be measured.
html-hop = Hop
html-hop-name = { $from } → { $to }, { $direction }
html-hop-whole = all together, { $direction }
html-hop-all = all together
html-hop-words = { $name }: road { $road }, tunnel { $tunnel }.
html-hop-doctor = The doctor on the worst hop: { $what }
html-should = Should be
html-should-good = at least { $least }: it is
html-should-below = at least { $least }: it is not
html-should-unknown = at least { $least }: not known

# At the foot.
html-footer-how = Loads outside the tunnel and through it were taken in turn, pair by pair, and their warm-up was thrown away. A share is the median over the pairs with a 95 % confidence interval (bootstrap). Rates are of what arrived.
html-footer-tune = Loads through the tunnel were taken without each change and with it in turn, pair by pair, and their warm-up was thrown away. A gain is the median over the pairs with a 95 % confidence interval (bootstrap). Rates are of what arrived.
html-footer-watched = Nothing was sent: what is shown flowed by itself, by the counters of the machines.
html-footer-made = Made by wirespeed { $version }. This file loads nothing from the network and runs no script.

# On the command line.
html-is-directory = --html { $path }: this is a directory
html-is-directory-todo = name a file: --html { $path }
