nested-tunnel-title = The tunnel runs inside another tunnel
