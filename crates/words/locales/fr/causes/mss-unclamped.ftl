mss-unclamped-title = Des hôtes derrière une passerelle envoient des segments trop grands pour le tunnel
