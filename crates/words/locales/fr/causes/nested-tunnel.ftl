nested-tunnel-title = Le tunnel passe dans un autre tunnel
nested-tunnel-because = Ce que { $place } envoie passe encore par { $outer } ({ $kind }) : chaque paquet est encapsulé deux fois, et ne va pas plus vite que ce tunnel-là.
nested-tunnel-because-too-large = Ce que { $place } envoie passe encore par { $outer } ({ $kind }), et un paquet plein est trop grand de { $excess ->
    [one] { $excess } octet
   *[other] { $excess } octets
 } pour celui-ci : il y est fragmenté ou perdu.
nested-tunnel-line-route = la route vers l’adresse « endpoint » du pair sort par
nested-tunnel-line-mtu = MTU de { $outer }, et celle de ce tunnel avec ses { $overhead } octets d’en-têtes
nested-tunnel-remedy-stack = Empiler les MTU : { $mtu } aux deux bouts, pour que les paquets pleins tiennent dans { $outer }
nested-tunnel-risk-stack = des paquets plus petits coûtent un peu de débit
nested-tunnel-risk-stack-ipv6 = { $mtu } est inférieur à { $least } : IPv6 ne fonctionne plus dans le tunnel
nested-tunnel-remedy-around = Supprimer une couche : une route vers { $to } qui ne sort pas par { $outer }
nested-tunnel-persistence-around = la même route là où le réseau de cette machine est configuré (networkd, NetworkManager, PostUp)
nested-tunnel-risk-around = le pair voit alors une autre adresse de cette machine, et ce que { $outer } cachait se voit sur le chemin ; certains réseaux ne laissent rien sortir d’autre
nested-tunnel-unknown-route = { $host } : on ne sait pas par où passe le chemin vers { $to } ({ $because })
