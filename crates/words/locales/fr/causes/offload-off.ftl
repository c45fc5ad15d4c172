offload-off-title = Des déchargements (offloads) sont coupés, et un processeur est la limite
offload-off-because = C’est un processeur de { $host } qui limite, et { $offloads } { $count ->
    [one] est désactivé
   *[other] sont désactivés
 } : le noyau fait pour chaque paquet ce qu’il pourrait faire pour beaucoup à la fois.
offload-off-name = { $offload } de { $link }
offload-off-remedy = Réactiver ces déchargements (offloads)
offload-off-risk = quelqu’un les a peut-être désactivés parce qu’un pilote abîme des paquets : surveiller ensuite les retransmissions et les sommes de contrôle
offload-off-unknown = { $place } : on ne sait pas quels déchargements (offloads) sont actifs
