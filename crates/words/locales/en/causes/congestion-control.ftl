congestion-control-title = The sender's congestion control backs off from loss that is not congestion
