firewall-cost-title = De nombreuses règles de pare-feu sur le chemin de chaque paquet
