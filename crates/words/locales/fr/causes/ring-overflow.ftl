ring-overflow-title = L’anneau de réception (ring) de la carte réseau déborde
ring-overflow-because = { $lost } paquets sont arrivés à la carte { $card } alors qu’elle n’avait aucun tampon libre, et s’y sont perdus ; { $through ->
    [one] { $through } autre est passé
   *[other] { $through } autres sont passés
 }.
ring-overflow-because-ring = { $lost } paquets sont arrivés à la carte { $card } alors qu’elle n’avait aucun tampon libre (son anneau de réception en contient { $ring }), et s’y sont perdus ; { $through ->
    [one] { $through } autre est passé
   *[other] { $through } autres sont passés
 }.
ring-overflow-line-ring = anneau de réception (ring) : longueur la plus grande et actuelle (ethtool -g)
ring-overflow-line-lost = rx_packets et { $counter }, { $when }
ring-overflow-line-empty = { $counter }, { $when } (aucun tampon libre, pas encore une perte)
ring-overflow-remedy = Un anneau de réception de { $next } paquets pour { $card }
ring-overflow-remedy-by-hand = Un anneau de réception plus long pour { $card }, si son pilote le permet
ring-overflow-persistence = RxBufferSize= sous [Link] dans un fichier .link (systemd.link(5))
ring-overflow-risk = la carte s’arrête pour ce changement, et certains liens tombent pendant quelques secondes ; jusqu’à { $next } paquets attendent dans chaque file, si bien que la latence peut augmenter ; un anneau qui ne tient plus dans le cache du processeur coûte du débit
ring-overflow-risk-by-hand = la carte s’arrête un instant ; une file d’attente plus longue avant la perte
ring-overflow-refused-longest = un anneau de réception plus long pour { $card } sur { $host }
ring-overflow-refused-why-longest = il a déjà sa plus grande longueur ({ $now } paquets) : répartir la charge sur davantage de files et de cœurs, ou demander moins de travail par paquet
