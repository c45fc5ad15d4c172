napi-threaded-stall-title = The kernel's tunnel receives nothing any more from a peer
napi-threaded-stall-because = { $peer } has a session and sent { $sent } bytes through it, and { $received ->
    [0] not one
   *[other] nothing but handshakes
 } came out of { $place }: with threaded NAPI the kernel has lost the wake-up for this peer ({ $known ->
    [yes] its kernel is known for it
    [perhaps] its kernel may be one of those known for it
   *[no] its kernel is not among those known for it
 }).
napi-threaded-stall-line-sent = sent by { $peer } in { NUMBER($seconds, maximumFractionDigits: 0) } s, and received of it here (`wg show NAME transfer`)
napi-threaded-stall-line-back = received by { $peer } from here meanwhile
napi-threaded-stall-line-kernel = kernel (`uname -r`)
napi-threaded-stall-line-kernels = kernels known for it
napi-threaded-stall-line-source = source
napi-threaded-stall-public = public
napi-threaded-stall-remedy = Make the interface anew, without threaded NAPI; then update the kernel
napi-threaded-stall-risk = the tunnel is down for some seconds: not from a session through this tunnel (systemd-run, or the console); all peers share one core when they receive
napi-threaded-stall-unknown = { $place }: none of the data that the peer sends comes out; whether it receives in threads is not known: { $because }
