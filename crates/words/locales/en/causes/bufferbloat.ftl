bufferbloat-title = A deep queue fills up while the tunnel is loaded
