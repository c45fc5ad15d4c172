mtu-below-path-title = La MTU du tunnel est plus petite que nécessaire
mtu-below-path-because = Le chemin porte { $path } octets, la MTU du tunnel pourrait donc être de { $could } au lieu de { $now } ; sur un chemin limité par sa bande passante, on y gagne { NUMBER($worth, minimumFractionDigits: 1, maximumFractionDigits: 1) } %.
mtu-below-path-because-busy = Le chemin porte { $path } octets, la MTU du tunnel est de { $now } au lieu de { $could }, et un bout manque de processeur : { $more } de paquets en plus pour les mêmes octets.
mtu-below-path-line-mtu = MTU du tunnel et MTU du chemin − { $room }, { $direction }
mtu-below-path-line-busiest = cœur le plus occupé pendant les charges dans le tunnel, { $direction }
mtu-below-path-remedy = Augmenter la MTU du tunnel jusqu’à { $mtu } aux deux bouts
mtu-below-path-risk = si un sens, ou un chemin emprunté plus tard, porte moins, les paquets pleins sont perdus : confirmer par un transfert en masse dans les deux sens
mtu-below-path-risk-others = { $others ->
    [one] { $others } autre pair utilise { $place }, et son chemin n’a pas été mesuré
   *[other] { $others } autres pairs utilisent { $place }, et leurs chemins n’ont pas été mesurés
 } : le plus étroit décide, et les paquets pleins qui le prennent sont perdus
