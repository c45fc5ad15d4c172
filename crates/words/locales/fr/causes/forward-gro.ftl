forward-gro-title = Une passerelle remet les datagrammes un par un au tunnel
forward-gro-because = { $host } n’a plus de temps de processeur disponible et route des paquets vers { $tunnel }, qui prend les datagrammes par trains ; mais ce qui arrive par { $links } n’est pas regroupé (rx-udp-gro-forwarding désactivé), et chaque datagramme UDP (QUIC, appels) passe donc seul.
forward-gro-line-forwarded = paquets routés (Ip ForwDatagrams), { $direction }
forward-gro-line-feature = `ethtool -k { $interface }` : { $feature }
forward-gro-remedy = Regrouper l’UDP qui est routé
forward-gro-risk = demande que rx-gro-list soit désactivé ; les pilotes qui traitent mal les trains de datagrammes en perdent
forward-gro-refused = rx-udp-gro-forwarding sur { $host }
forward-gro-refused-why = sans effet pour un tunnel que porte le noyau : WireGuard prend chaque datagramme externe avant qu’un train n’en soit fait (net/ipv4/udp_offload.c, udp_gro_receive), et redécoupe ce qu’on lui remet pour le chiffrer
