congestion-control-title = Le contrôle de congestion de l’émetteur ralentit pour des pertes qui ne sont pas de la congestion
congestion-control-because = Avec { $tried } au lieu de { $current }, le même transfert est plus rapide de { $gain } : la perte ici n’est pas de la congestion, et { $current } ralentit pourtant pour elle.
congestion-control-line-rates = débit utile TCP avec { $current } et avec { $tried }, à tour de rôle, { $direction }
congestion-control-line-gain = gain : borne inférieure et milieu de son intervalle
congestion-control-line-again = segments retransmis une fois passé le démarrage de chaque charge, { $direction }
congestion-control-remedy-route = { $tried } pour ce qui sort par { $place }
congestion-control-risk-route = seulement les connexions que cette machine émet dans le tunnel{ $kernel ->
    [paces] {""}
   *[other]  ; le noyau { $kernel } n’espace les paquets qu’avec la discipline de file fq : la mettre aussi
 }{ $routes ->
    [alike] {""}
    [unknown]  ; ce que ses routes ont à présent n’est pas connu, et `ip route show dev { $interface } table all` le montre : le noter, pour pouvoir revenir en arrière
   *[differ]  ; ses routes n’ont pas toutes le même à présent, comme le montre `ip route show dev { $interface } table all` : les noter, pour pouvoir revenir en arrière
 }
congestion-control-remedy-default = { $tried } pour toutes les connexions de { $host }
congestion-control-risk-default = toutes les autres connexions de la machine changent aussi{ $kernel ->
    [paces] {""}
   *[other]  ; le noyau { $kernel } n’espace les paquets qu’avec la discipline de file fq : la mettre aussi
 }
congestion-control-unknown-pairs = { $direction } : des pertes ont été vues, mais { $pairs ->
    [one] { $pairs } paire seulement avec un autre contrôle de congestion a été mesurée
   *[other] { $pairs } paires seulement avec un autre contrôle de congestion ont été mesurées
 } : il en faut au moins { $needed }
congestion-control-unknown-tried = { $direction } : des pertes ont été vues, mais aucun autre contrôle de congestion n’a été essayé
congestion-control-unknown-again = { $direction } : { NUMBER($percent, minimumFractionDigits: 1, maximumFractionDigits: 1) } % de ce que les connexions du tunnel ont envoyé a été retransmis ; la raison n’est pas connue sans charge
congestion-control-unknown-load = ce qu’un émetteur fait des pertes
