collapse-above-rate-title = The tunnel carries less when it is asked for more
