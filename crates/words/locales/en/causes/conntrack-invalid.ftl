conntrack-invalid-title = Connection tracking calls packets of the tunnel's connections invalid
