icmp-black-hole-title = Les paquets trop grands pour le chemin disparaissent sans erreur
