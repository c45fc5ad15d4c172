path-slow-title = The road itself is slow; the tunnel is not to blame
path-slow-because = Outside the tunnel the road carries { $bare } of the expected { $expected }, and the tunnel carries { $share } of that.
path-slow-line-bare = bare TCP goodput against what was expected, { $direction }
path-slow-refused = tuning WireGuard, its MTU, buffers or sysctls
path-slow-refused-why = the tunnel already carries what the road does: look at the line, the provider or the hop in between
path-slow-unknown-bare = { $direction }: the bare path was not measured
