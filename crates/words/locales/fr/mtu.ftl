# Ce que disent les sondes de la MTU du tunnel.

mtu-line-outside = MTU du chemin et taille extérieure d’un paquet du tunnel
mtu-line-route = MTU de la route vers l’adresse « endpoint » du pair
mtu-line-probe = sonde sans fragmentation ({ $method }) : plus grande taille passée, plus petite refusée
mtu-line-reported = retour d’un « fragmentation needed » ou « packet too big »
mtu-line-sweep = balayage des tailles dans le tunnel : plus grande passée, plus petite perdue
