irq-placement-title = The card's interrupts go to the wrong cores
irq-placement-because-crowded = { $share } of the interrupts of { $card }, from { $queues } queues, go to core { $core }, which is { $busy } busy while the others have room.
irq-placement-because-wandering = irqbalance moved the interrupts of { $card } between the samples, and the tunnel was slower in every one with them on core { $slow } than in any with them on core { $fast }.
irq-placement-line-rates = TCP goodput through the tunnel, { $direction }, with the interrupts on core { $slow } ({ $slower } samples) and on core { $fast } ({ $faster } samples)
irq-placement-line-irqbalance = irqbalance runs
irq-placement-line-interrupt = interrupt { $number } ({ $name }), { $when }: all, and those on core { $core } ({ $share })
irq-placement-remedy-spread = A core of its own for each queue of { $card }
irq-placement-remedy-pin = The interrupts of { $card } on core { $core } for good
irq-placement-risk = other interrupts and programs of those cores; irqbalance moves them again unless it is told not to
irq-placement-persistence = the same lines at each start, where the numbers are looked up by their names in /proc/interrupts (they change); where irqbalance runs, `IRQBALANCE_ARGS="{ $bans }"` in /etc/default/irqbalance
irq-placement-refused = irqbalance on or off as a rule on { $host }
irq-placement-refused-why = it was measured both faster and slower with WireGuard, depending on the firewall and the machine: try it, measure, keep what is faster
irq-placement-unknown = { $place }: whether its interrupts go to the right cores is not known: { $because }
