# What a tune tries, keeps and refuses.

tune-guard-loaded-rtt = round trip under load
tune-guard-goodput = goodput
tune-guard-drops = drops
tune-guard-cpu-per-byte = processor time per byte
tune-why-too-few = not proved: only { $pairs } of { $of } pairs could be compared
tune-why-worse = it made things worse, over { $pairs } pairs
tune-why-not-proved = not proved: the interval of the gain includes zero over { $pairs } pairs
tune-why-little-goodput = proved, but under { $least }: not worth a change
tune-why-little-rtt = proved, but under { $least } or 1 ms: not worth a change
tune-why-price = a gain, but at a price: { $guards } got worse
tune-why-kept = the interval of the gain excludes zero over { $pairs } pairs, and no guard got worse
tune-why-kept-apart = the interval of the gain excludes zero over { $pairs } pairs; not comparable, as the load before was another one: { $guards }
tune-why-both = { $why } (mean of both directions)
tune-why-put-back = { $before }; put back afterwards: { $why }

tune-step-diagnosing = diagnosing
tune-step-diagnosing-again = diagnosing again
tune-step-as-it-was = { $code }: pair { $pair } of { $pairs }, as it was
tune-step-changed = { $code }: pair { $pair } of { $pairs }, changed

tune-ended-put-back = everything was put back: { $error }
tune-ended-time = the time is spent: the next experiment takes about { $seconds } s; give more with a larger budget
tune-ended-failed = the experiment for { $code } failed: { $error }
tune-not-tried = { $code }: { $remedy }
tune-not-tried-far = it changes { $setting } at the far end, where wirespeed does not run (--far ssh://…)

# The script of --plan; each is one line of comment.
tune-plan-head = On { $host }: what `wirespeed tune` would try, one remedy at a time, keeping only what is measured to help.
tune-plan-by-hand = By hand: run one block, measure, and take it back with its undo lines if it does not help.
tune-plan-finding = { $code } on { $host }: { $because }
tune-plan-risk = Risk: { $risk }
tune-plan-line-by-hand = by hand: { $line }
tune-plan-line-undo = undo: { $line }
tune-plan-keep = To keep it over a reboot: { $how }

# Why something was put back.
tune-reason-asked = asked by the user
tune-reason-nobody = nobody confirmed in time
tune-reason-nothing-kept = nothing was kept
tune-reason-journal = the journal was removed
tune-reason-program = the program that made the changes ended
tune-reason-both-ended = the program and its watchdog had ended
tune-reason-watchdog = the watchdog had ended
tune-reason-far = the far end could not begin
tune-reason-told-to-end = the watchdog was told to end ({ $signal })
tune-reason-nothing-heard = nothing was heard of the experiment for { $seconds } s
tune-reason-no-traffic = the tunnel stopped passing traffic: no echo reply for { $seconds } s
tune-reason-all = everything was put back: { $why }
tune-reason-all-before = everything was put back before it was confirmed: { $why }

# What a tune could not do.
tune-error-state = { $doing } { $path }: { $error }; nothing was changed. Run as root, or name a writable directory in WIRESPEED_STATE
tune-error-not-recorded = what could be put back was, but writing that to { $path } failed: { $error }; make room there, then run `wirespeed tune undo`
tune-error-journal = the journal { $path } can't be read ({ $why }); it says how to put things back, so look at it before you remove it
tune-error-held = another wirespeed tune is at work here: { $holder }; wait for it, or end it with `wirespeed tune undo` (or `wirespeed tune confirm`, once its experiments are over)
tune-error-not-begun = no tune has been begun by this program; nothing was changed
tune-error-not-armed = the watchdog did not start ({ $why }); nothing was changed
tune-error-over = the experiment is over: { $why }
tune-error-nothing-kept = there is no change waiting to be confirmed here; see `wirespeed tune status`
tune-error-changed-by-others = { $setting } was changed by somebody else meanwhile (it is { $now }); theirs was left in place and the experiment given up
tune-error-at = { $machine }: { $message }
tune-error-diagnosis = the diagnosis failed: { $why }
tune-error-stopped = stopped; everything was put back
tune-doing-finding = finding
tune-doing-creating = creating
tune-doing-looking = looking at
tune-doing-using = using
tune-doing-reading = reading
tune-doing-locking = locking
tune-doing-archiving = archiving the journal as
tune-doing-writing = writing the journal
