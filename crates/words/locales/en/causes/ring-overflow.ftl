ring-overflow-title = The card's receive ring overflows
ring-overflow-because = { $lost } packets, beside { $through } that came through, arrived at { $card } while it had no free buffer, and were lost in the card.
ring-overflow-because-ring = { $lost } packets, beside { $through } that came through, arrived at { $card } while it had no free buffer, and were lost in the card (its receive ring holds { $ring }).
ring-overflow-line-ring = receive ring: longest and now (ethtool -g)
ring-overflow-line-lost = rx_packets and { $counter }, { $when }
ring-overflow-line-empty = { $counter }, { $when } (no free buffer, not yet a loss)
ring-overflow-remedy = A receive ring of { $next } packets for { $card }
ring-overflow-remedy-by-hand = A longer receive ring of { $card }, where its driver allows one
ring-overflow-persistence = RxBufferSize= under [Link] in a .link file (systemd.link(5))
ring-overflow-risk = the card stops for the change, and on some the link goes down for seconds; up to { $next } packets wait in each queue, so latency can grow; a ring that no longer fits the processor's cache costs throughput
ring-overflow-risk-by-hand = the card stops for a moment; a longer queue before loss
ring-overflow-refused-longest = a longer receive ring of { $card } on { $host }
ring-overflow-refused-why-longest = it has its greatest length already ({ $now } packets): spread the load over more queues and cores, or give each packet less work
