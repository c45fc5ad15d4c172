# What the program says of itself: commands, files, wrong input.

explain-list = The causes wirespeed knows:
explain-list-more = wirespeed explain CODE tells more about one.
explain-no-such-code = there is no cause with the code { $code }
explain-no-such-code-todo = wirespeed explain lists those there are

# What could not be done.
cli-failure = { $what }; { $todo }
cli-see-message = see the message
cli-stopped = stopped on request
cli-stopped-todo = run the command again when it suits
cli-stopped-put-back = everything was put back as it was
cli-no-interface-todo = bring the tunnel up first (wg-quick up NAME), or run wirespeed where it is (in its network namespace: ip netns exec NAME wirespeed …), as root
cli-choose-among = choose among { $names }
cli-further-command-todo = if the command { $command } was meant: it comes right behind tune, before any option (wirespeed tune { $command } …)
cli-not-read = { $path } could not be read: { $why }
cli-too-large = it is larger than { $most } bytes
cli-not-that = it is not { $what } ({ $error })
cli-not-written = { $path } could not be written: { $why }
cli-is-disk = it is a disk or a part of one, and what is on it would be lost
cli-not-written-todo = choose a file in a directory that exists and may be written
cli-no-handler = the handler for Ctrl-C could not be set: { $error }
cli-no-handler-todo = check the limits of this process
cli-no-output = standard output could not be written: { $error }
cli-no-output-todo = check where it is redirected to
cli-no-json = the result can't be written as JSON: { $error }
cli-no-json-todo = report this as a bug
cli-left = { $time } left

# What was typed.
cli-no-unit-of-rate = { $unit } is no unit of a rate; write it like 300mbit, 1.5gbit or 64kbit
cli-rate-without-unit = { $text } has no unit; write it like 300mbit, 1.5gbit or 64kbit
cli-no-rate = { $text } is no rate above zero; write it like 300mbit, 1.5gbit or 64kbit
cli-no-unit-of-time = { $unit } is no unit of time; write it like 90s, 10m or 1h
cli-no-time = { $text } is no time above zero; write it like 90s, 10m or 1h
cli-longer-than-a-week = { $text } is too long; a week is the most
cli-longer-than-an-hour = { $text } is too long; an hour is the most
cli-no-streams = { $text } is no number of streams between 1 and 128
cli-no-connections = { $text } is no number of connections between 1 and 20000
cli-no-address = invalid IP address syntax

# Records.
cli-recording = a recording of wirespeed doctor
cli-recording-todo = wirespeed doctor --record FILE makes one
cli-recording-anew = record it anew with wirespeed doctor --record FILE, or leave --from away
cli-recording-refused = { $path } can't be where this tune begins: { $why }
cli-recording-of-another = it is of another tunnel, or of another machine
cli-recording-too-old = it is older than 15 minutes, or from the future
cli-record = a record of wirespeed test
cli-record-todo = wirespeed test --output FILE writes one
cli-tune-record = the record of a tune
cli-tune-record-todo = see what tune said above

# What was compared, and chains of machines.
cli-connections = { $at_once } connections at once
cli-comparison = { $direction } with { $streams ->
    [one] one stream
   *[other] { $streams } streams
 }
cli-hop-without-far = --hop needs the end of the chain
cli-hop-without-far-todo = name it with --far
cli-no-hop = { $place } can't be a hop: wirespeed must run there
cli-no-hop-todo = give ssh://HOST or netns:NAME
cli-hop-not-seen = the doctor could not look at that hop: { $error }
cli-quiet-tune = with --quiet nobody is told that what the tune keeps is put back unless it is confirmed
cli-quiet-tune-todo = add --yes to confirm at once, or --confirm-within TIME and run wirespeed tune confirm within it
cli-nothing-to-confirm = no change waits to be confirmed on { $machines }
cli-nothing-to-confirm-todo = wirespeed tune status shows what there is; the far machine is asked only with --far

# The demonstration.
cli-not-started = wirespeed could not be started: { $error }
cli-not-started-todo = try again
cli-ended-with = `wirespeed { $command }` ended with { $code }
cli-ended-with-todo = see what it said above
cli-ended-with-quiet-todo = where nothing is said above, run wirespeed demo without --quiet to see why
cli-knob-mtu = MTU of { $link } on { $host }
cli-knob-buffers = receive buffers of { $link } on { $host }
cli-knob-queueing = queueing of { $link } on { $host }
cli-no-link = no such link
cli-left-namespace = namespace { $name }
cli-left-control = control socket of { $interface }
cli-left-statistics = statistics socket of { $interface }
cli-left-record = the record of lab { $lab }

# Labs.
cli-lab-gone = lab { $lab } is gone
cli-lab-left-behind-gone = lab { $lab }, left behind by a process that died, is gone
cli-scenarios = Scenarios:
cli-labs = Labs on this machine:
cli-no-labs = none
cli-lab-up = up
cli-lab-building = being made
cli-lab-left-behind = left behind; wirespeed lab down removes it
cli-lab-of-another-version = of another version of wirespeed; wirespeed lab down { $lab } removes it
cli-lab-goes-by-name = lab { $lab } is of another version of wirespeed; wirespeed lab down { $lab } removes it
cli-no-lab = there is no lab
cli-no-lab-todo = wirespeed lab up SCENARIO makes one
cli-several-labs = there are several labs: { $names }
cli-several-labs-todo = name the one you mean
cli-head-host = host
cli-head-namespace = namespace
cli-head-road = road
cli-head-tunnel = tunnel
cli-head-site = site
cli-head-interface = interface
cli-note = note
cli-nobody-yet = nobody yet
cli-carried-by = carried by { $carrier }
cli-go-on = Go on with (the doctor should find { $finding }):
cli-lab-state = { $scenario }, tunnel carried by { $carrier }
