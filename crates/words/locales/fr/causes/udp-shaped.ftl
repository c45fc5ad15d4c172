udp-shaped-title = Le chemin ralentit UDP, ou le port du tunnel, et non TCP
udp-shaped-because-all = De { $from } vers { $to }, le chemin transporte TCP à { $tcp }, mais sur { $offered } d’UDP il n’en arrive que { $arrived } : quelqu’un, en chemin, limite UDP, et le tunnel est de l’UDP.
udp-shaped-because-tunnel = De { $from } vers { $to }, { $share } des paquets du tunnel se perdent en chemin, alors qu’UDP vers le port { $port } passe à { $offered } : quelqu’un, en chemin, traite le port du tunnel, ou WireGuard, plus mal que le reste.
udp-shaped-line-udp = UDP hors du tunnel, port { $port } : envoyé et arrivé, { $direction }
udp-shaped-remedy-try = Essayer un autre port ; certains réseaux épargnent 443 ou 53, d’autres limitent tout UDP
udp-shaped-remedy-try-port = Essayer le port { $port } ; certains réseaux ne ralentissent qu’un seul port (443, celui de QUIC), d’autres limitent tout UDP
udp-shaped-remedy-try-by-hand = Essayer un autre port ; certains réseaux épargnent 443 ou 53, d’autres limitent tout UDP (à la main : l’adresse appelée n’appartient à aucune des deux extrémités)
udp-shaped-remedy-move = Déplacer le tunnel vers un autre port, puis mesurer à nouveau
udp-shaped-remedy-move-by-hand = Déplacer le tunnel vers un autre port, puis mesurer à nouveau (à la main : l’adresse appelée n’appartient à aucune des deux extrémités)
udp-shaped-persistence = `ListenPort = { $port }` de ce côté, et `Endpoint = …:{ $port }` dans le fichier de chaque pair
udp-shaped-risk = il faut le nouveau port à chaque pair, et les pare-feu en chemin doivent le laisser entrer
udp-shaped-refused = de plus grands tampons, une autre MTU ou un autre contrôle de congestion
udp-shaped-refused-why = ce qu’un réseau retire en chemin, aucun réglage des extrémités ne le rend ; le dire à l’opérateur, avec ces chiffres
udp-shaped-unknown = { $direction } : le tunnel est bien plus lent que TCP hors du tunnel, mais UDP hors du tunnel n’a pas été mesuré
