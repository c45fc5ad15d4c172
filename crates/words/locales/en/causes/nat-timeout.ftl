nat-timeout-title = The tunnel falls asleep behind a NAT
nat-timeout-because = { $far } could not reach { $here } through the idle tunnel until { $here } had sent something: a NAT or firewall on { $here }'s side forgets the tunnel's mapping.
nat-timeout-because-one-sided = The last handshake is long dead, we send, and nothing comes back: a NAT in between may have forgotten the mapping (or the far end is gone).
nat-timeout-line-far-first = echo requests on the idle tunnel: sent, answered
nat-timeout-line-far-again = the same once more, until a second handshake would have got through: sent, answered
nat-timeout-line-here-then = then echo requests from this side: sent, answered
nat-timeout-line-far-after = then the first once more: sent, answered
nat-timeout-line-translated = our address as the far end's WireGuard sees it
nat-timeout-line-keepalive = persistent keepalive
nat-timeout-line-handshake = age of the last handshake
nat-timeout-line-silence = bytes sent to and received from the peer meanwhile
nat-timeout-remedy = PersistentKeepalive = { $seconds } on the side behind the NAT
nat-timeout-persistence = `PersistentKeepalive = { $seconds }` under [Peer] in the wg-quick file
nat-timeout-risk = a packet every { $seconds } s: some battery on a phone
nat-timeout-unknown-far = { $far } is reached at { $address }, which is none of its addresses; whether it still is after idling was not tried, since it was the first to send: run the doctor there
nat-timeout-unknown-peer = the peer is not known
nat-timeout-unknown-watched = a watch does not try whether the far end reaches us through the idle tunnel
nat-timeout-unknown-one-sided = nothing runs at the far end, so whether it can reach us through the idle tunnel is not known
nat-timeout-unknown-in-use = { $place } carried { $bytes } bytes between the start of this run and the moment it was tried – of other programs, of the connection to the far end, or of loads of this run itself –, so nothing could forget it; leave the tunnel idle for some minutes, then run `wirespeed doctor` for it alone, with the far end reached outside of it
nat-timeout-unknown-handshake = { $far } was not heard through the idle tunnel at first, but its session was dead by then, or of an age that is not known: what it sent had to wait for a handshake, and whether a second one got through was not tried; leave the tunnel idle for some minutes, then run the doctor again
nat-timeout-unknown-session = { $far } was not heard through the idle tunnel at first, but { $here } had made no handshake since its interface came up, so { $far } sent over a session that { $here } does not know; leave the tunnel idle for some minutes, then run the doctor again
