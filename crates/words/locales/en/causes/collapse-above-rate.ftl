collapse-above-rate-title = The tunnel carries less when it is asked for more
collapse-above-rate-because = Held to { $cap } the tunnel carries { $held } and varies by { $held_variation }; without a cap it carries { $free } and varies by { $free_variation }: above that rate something on the way collapses.
collapse-above-rate-line = goodput by cap ({ $by }), { $direction }
collapse-above-rate-line-steady = goodput by cap ({ $by }), steady, { $direction }
collapse-above-rate-line-retransmits = segments sent again per second without a cap, and with { $cap }, { $direction }
collapse-above-rate-line-variation = variation of the goodput without a cap, and with { $cap }, { $direction }
# Follows the rate in the title of a remedy.
collapse-above-rate-remedy-remark = , the highest rate that stayed steady
collapse-above-rate-risk = caps the tunnel's peak; look for the rate again after every other repair: in one public case it rose from 150 to 450 Mbit/s
collapse-above-rate-unknown = { $direction }: the goodput swings widely, but no cap was tried (--sweep)
