mss-unclamped-title = Hosts behind a gateway send segments too large for the tunnel
