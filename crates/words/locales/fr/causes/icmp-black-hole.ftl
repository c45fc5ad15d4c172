icmp-black-hole-title = Les paquets trop grands pour le chemin disparaissent sans erreur
icmp-black-hole-because = Le chemin transporte { $mtu } octets, le tunnel en envoie { $sent }, et aucun « fragmentation needed » ne revient : l’émetteur n’apprend jamais pourquoi ses paquets pleins se perdent.
icmp-black-hole-because-unknown = Le chemin transporte une taille inconnue, le tunnel envoie { $sent } octets, et aucun « fragmentation needed » ne revient : l’émetteur n’apprend jamais pourquoi ses paquets pleins se perdent.
icmp-black-hole-remedy-probing = Laisser TCP, chez les émetteurs, chercher la taille qui passe
icmp-black-hole-risk-probing = concerne toutes les connexions TCP de la machine ; n’aide que celles qui y commencent ou y finissent, et seulement après un blocage de quelques secondes ; UDP et QUIC n’y gagnent rien
