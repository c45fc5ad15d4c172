# Une chaîne de sauts.

hops-worst-tunnel = le tunnel de ce saut ({ $hop }) transporte { $share } de son propre chemin ({ $direction }), de façon sûre entre { $low } et { $high } ; un saut devrait transporter { $should }
hops-worst-road = aucun tunnel ne perd trop de son chemin ; le saut le plus étroit ({ $hop }) transporte { $rate } ({ $direction }), et aucun réglage de WireGuard n’élargit un chemin
hops-worst-road-perhaps = le chemin le plus étroit ({ $hop }) transporte { $rate } ({ $direction }) ; impossible de dire si chaque tunnel transporte sa part de son chemin
hops-worst-slowest = le tunnel le plus lent ({ $hop }) transporte { $rate } ({ $direction }) ; le chemin qui le porte n’a pas pu être mesuré
hops-remark-in-between = chaque saut pris seul est bon, mais pas l’ensemble : regarder les machines intermédiaires pendant qu’elles transfèrent (leurs cœurs, leur pare-feu, l’ajustement de la MSS sur leurs tunnels)
hops-remark-no-tunnel = aucun tunnel WireGuard ne relie deux de ces machines
hops-remark-rule = sur { $hops } sauts WireGuard, l’ensemble devrait transporter au moins { $share } du pire saut hors de son tunnel
hops-remark-no-rule = { $hops } sauts WireGuard, c’est plus que n’en couvre la règle des { $share } ({ $most }) : chaque saut est jugé pour lui-même
hops-remark-another-way = l’aller-retour d’un bout à l’autre ({ $whole }) est plus long que ceux des sauts réunis ({ $hops }) : le trafic prend un autre chemin que cette chaîne
hops-remark-no-yardstick = { $direction } : l’ensemble transporte { $rate }, mais tous les sauts n’ont pas pu être mesurés hors de leur tunnel : il manque donc l’étalon
