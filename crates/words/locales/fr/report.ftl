# Ce que le terminal montre d’un enregistrement.

# Verdicts et mots.
report-word-healthy = sain
report-word-unmeasured = non mesuré
report-word-watched = observé
report-word-findings = { $count ->
    [one] { $count } constat
   *[other] { $count } constats
 }
report-word-slow = lent
report-word-too-slow = trop lent
report-word-incomplete = incomplet
report-word-not-comparable = non comparable
report-word-ended-early = interrompu
report-word-nothing-tried = rien essayé
report-word-nothing-kept = rien gardé
report-word-kept = { $count ->
    [one] { $count } gardé
   *[other] { $count } gardés
 }
report-not-known = non connu
report-not-known-because = non connu : { $reason }
report-not-measured = Non mesuré
report-not-measured-because = non mesuré : { $reason }
report-not-set = non défini
report-here = ici
report-far = en face
report-far-end = l’autre bout

# Une chose, et ce qu’on en dit.
report-told = { $what } : { $text }
report-and = { $one } ; { $other }

# Ce que transporte un tunnel. $load est « envoi » ou « envoi, 10 flux » ; $carried et $said sont l’un de ces messages.
report-carried = le tunnel transporte { $share } des { $road } du chemin ({ $load })
report-carried-alone = le tunnel transporte { $rate } ({ $load }) ; le chemin lui-même n’a pas été mesuré
report-carried-nothing = presque rien d’un gros transfert ne passe par le tunnel ({ $direction }), alors que le chemin transporte { $road }
report-load = { $direction }, { $streams } flux
report-exchanges-carried = le tunnel établit { $share } des { $road } nouvelles connexions par seconde du chemin ({ $at_once } à la fois)
report-exchanges-carried-alone = le tunnel établit { $tunnel } nouvelles connexions par seconde ({ $at_once } à la fois) ; le chemin lui-même n’a pas été mesuré
report-watched-for = observé pendant { $time } sans charge : { $received } en entrée et { $sent } en sortie
report-watched-unread = observé pendant { $time } sans charge : les compteurs du tunnel n’ont pas pu être lus

# La réponse en une phrase.
report-tunnel-to = { $interface } (vers { $far })
report-said = { $tunnel } : { $said }.
report-healthy = { $tunnel } : { $carried }. Rien à lui reprocher.
report-healthy-unmeasured = { $tunnel } : aucun défaut n’a été trouvé.
report-watched = { $tunnel } : { $said } ; aucun défaut ne se montre.
report-too-little = { $tunnel } : { $carried }. Rien n’a été trouvé, mais c’est trop peu pour le dire sain : voir « Non vérifié ».
report-one-way = { $tunnel } : rien n’a été trouvé, mais tous les sens n’ont pas pu être mesurés.
report-no-way = { $tunnel } : rien n’a pu être mesuré, et rien n’a été trouvé sans mesurer.
report-never-met = Le tunnel n’est pas encore établi : ses deux bouts n’ont jamais fait de handshake, rien n’y passe donc. L’autre bout est-il en marche, chaque bout a-t-il la clé publique de l’autre, et l’un d’eux connaît-il l’adresse « Endpoint » de l’autre ?
report-never-met-at = Le tunnel n’est pas encore établi : ses deux bouts n’ont jamais fait de handshake, rien n’y passe donc. L’autre bout est-il en marche, chaque bout a-t-il la clé publique de l’autre, et l’UDP atteint-il { $endpoint } à travers les pare-feu ?
report-name-the-far-end = Pour que le tunnel soit mesuré, nommer son autre bout, wirespeed étant installé là aussi :
report-name-a-server = Ou bien, avec là-bas un simple serveur iperf3, qui en dit moins :
report-its-host = HÔTE
report-this-machine = cette machine
report-test-slow = { $tunnel } : { $carried }. `wirespeed doctor` en trouve la raison.
report-test-nothing = { $tunnel } : rien n’a pu être mesuré.
report-details = -v montre tous les chiffres sur lesquels cela repose.

# Constats.
report-by-hand-more = { $count ->
    [one] { $title } (-v en montre la commande)
   *[other] { $title } (-v en montre les { $count } commandes)
}
report-commands-too-long = { $count ->
    [one] une commande, trop longue pour être montrée ici (--json la donne)
   *[other] { $count } commandes, trop longues pour être montrées ici (--json les donne)
}
report-severity-critical = critique
report-severity-warning = avertissement
report-severity-info = information
report-place = sur { $host }, sûr à { $sure }
report-place-direction = sur { $host }, { $direction }, sûr à { $sure }
report-evidence = { $what } : { $values } ({ $place })
report-asked = Mesuré aussi, pour distinguer les causes : { $all }.
report-refused = N’aiderait pas ici
report-not-checked = Non vérifié
report-more = { $left ->
    [one] et { $left } autre (-v le montre).
   *[other] et { $left } autres (-v les montre).
 }

# Où taper une commande, en commentaire derrière elle.
report-typed-on = sur { $host }

# Étiquettes, de neuf lettres au plus là où elles forment une colonne.
report-label-explains = explique
report-label-evidence = preuve
report-label-fix = corriger
report-label-remedy = remède
report-label-keep = garder
report-label-undo = annuler
report-label-risk = risque
report-label-useless = inutile
report-label-by-hand = à la main
report-label-more = lire
report-label-note = note
report-label-failed = échec
report-label-no-end = inachevé
report-label-first = d’abord
report-label-change = réglage
report-label-measured = mesuré
report-label-guard = garde-fou
report-label-why = pourquoi
report-label-on = sur
report-label-keep-it = garder
report-label-put-it-back = remettre
report-label-kernel = noyau
report-label-device = démon
report-label-peer = pair
report-label-peers = pairs
report-label-rtt-road = RTT repos, chemin
report-label-rtt-tunnel = RTT repos, tunnel
report-label-path-mtu = MTU du chemin
report-label-sizes = dans le tunnel
report-label-congestion = congestion
report-label-datagrams = datagrammes
report-label-segmentation = segmentation

# Tableaux.
report-streams = flux
report-road = chemin
report-tunnel = tunnel
report-share = part
report-should = attendu
report-hop = saut
report-pair = paire
report-interval = intervalle à 95 %
report-loaded-rtt = RTT en charge
report-no-tunnel = sans tunnel
report-comparison = { $direction } { $protocol }, { $streams } flux

# Échantillons.
report-sample-stalled = bloqué
report-sample-ran = durée { $time }
report-sample-retransmits = { $count ->
    [one] { $count } retransmission
   *[other] { $count } retransmissions
 }
report-sample-lost = { $share } de pertes
report-sample-died = { $count ->
    [one] { $count } flux mort
   *[other] { $count } flux morts
 }
report-sample-rtt = RTT { $rtt }
report-sample-core-here = cœur le plus chargé ici { $share }
report-sample-core-far = cœur le plus chargé en face { $share }
report-sample-drops-here = { $count ->
    [one] { $count } rejet du socket ici
   *[other] { $count } rejets du socket ici
 }
report-sample-drops-far = { $count ->
    [one] { $count } rejet du socket en face
   *[other] { $count } rejets du socket en face
 }
report-rtt = { $min } min., { $median } médian, { $high } à 95 %
report-rtt-none = { $sent ->
    [one] aucune réponse à { $sent } demande
   *[other] aucune réponse à { $sent } demandes
 }

# Au fil du temps. $full est le haut de l’échelle, $gap ce qui n’a pas été mesuré.
report-over-time = Débit au fil du temps
report-over-time-tunnel = Le tunnel au fil du temps, à l’échelle du chemin
report-over-time-rate = débit
report-over-time-window = fenêtre de congestion
report-over-time-direction = débit, { $direction }
report-over-time-without = sans
report-over-time-with = avec
report-over-time-scale = { $full } vaut { $most }, chaque caractère { $step }
report-over-time-of = { $span } sur { $most }
report-over-time-top = { $full } est le plus haut du chemin et du tunnel, chaque caractère vaut { $step }.
report-over-time-parted = Sans les mises en route ; une espace sépare deux charges.
report-over-time-whole = Sans les mises en route.
report-over-time-gap = Marqué { $gap } : un temps sans mesure.

# Sondes.
report-probes = Sondes
report-size-passed = { $size } octets passent
report-size-passed-nothing = rien ne passe
report-size-failed = { $size } non
report-size-all = et tout jusqu’à la MTU
report-size-reported = le chemin a signalé { $mtu }
report-size-silent = et aucune erreur n’est revenue
report-trial = { $direction } : { $tried } au lieu de { $current } : { $gain } ({ $low } à { $high })
report-datagrams-road = { $direction }, chemin : { $sent } de { $payload } octets à { $rate } : { $lost } de pertes, { $disordered } de déséquencement
report-datagrams-tunnel = { $direction }, tunnel : { $sent } de { $payload } octets à { $rate } : { $lost } de pertes, { $disordered } de déséquencement
report-segmentation = { $direction } : sur { $sent } envoyés un à un, { $arrived } sont arrivés ; sur { $trains_sent } envoyés en trains, { $trains_arrived }
report-segmentation-refused = le noyau a refusé les trains : { $why }

# Machines.
report-cores = { $count ->
    [one] { $count } cœur
   *[other] { $count } cœurs
 }
report-by-kernel = { $name }, MTU { $mtu }, porté par le WireGuard du noyau
report-by-program = { $name }, MTU { $mtu }, porté par { $program } (espace utilisateur)
report-by-userspace = { $name }, MTU { $mtu }, porté par un WireGuard en espace utilisateur
report-device-workers = { $count ->
    [one] { $count } thread de travail
   *[other] { $count } threads de travail
 }
report-device-without = sans { $offload } ({ $state })
report-device-dropped = { $count } rejetés ({ $reason })
report-peer-nowhere = pas d’adresse « endpoint »
report-peer-heard = dernier handshake il y a { $age }
report-peer-never-heard = jamais de handshake
report-peer-allowed = adresses autorisées { $ips }
report-peer-allowed-none = aucune adresse autorisée
report-peers-more = { $count ->
    [one] { $count } autre
   *[other] { $count } autres
 }

# Une observation.
report-in = entrée
report-out = sortie
report-connections = connexions
report-sent-again = retransmis
report-busiest-core = cœur max.
report-heard = Le dernier handshake avec le pair remonte à { $age }.
report-heard-silent = Le dernier handshake avec le pair remonte à { $age } ; { $sent } lui ont été envoyés dans les dernières { $time }, et rien n’est revenu.
report-never-heard = Il n’y a jamais eu de handshake avec le pair.
report-never-heard-silent = Il n’y a jamais eu de handshake avec le pair ; { $sent } lui ont été envoyés dans les dernières { $time }, et rien n’est revenu.

# La recherche du plus haut débit.
report-sweep = Débits essayés, { $direction }
report-sweep-cap = plafond
report-sweep-uncapped = aucun
report-sweep-goodput = débit utile
report-sweep-variation = variation
report-sweep-rtt = RTT à 95 %
report-sweep-stable = stable
report-sweep-found = le plus haut plafond qui reste stable est { $cap } ; plafond posé par { $by }.
report-sweep-none = aucun des plafonds essayés ne reste stable ; plafond posé par { $by }.

# Chaînes de sauts.
report-hops-next = la machine suivante
report-hops-doctor = Le docteur sur le saut de { $from } vers { $to }
report-hops-nothing = Rien n’a pu être mesuré.
report-hops-all = tous
report-hops-all-together = tous ensemble
report-hops-no-rule = sans règle

# Échanges courts.
report-exchanges = Échanges courts, { $at_once } à la fois
report-exchanges-sizes = Échanges courts, { $at_once } à la fois, { $request } demandés et { $response } en réponse
report-exchanges-rate = nouveaux par seconde
report-exchanges-completed = aboutis
report-exchanges-failed = échoués
report-exchanges-connect = connexion
report-exchanges-first-byte = premier octet
report-exchanges-total = total
report-exchanges-longest = max.
report-exchanges-share = Par le tunnel, { $share } des nouvelles connexions par seconde du chemin ; avec une confiance de 95 %, entre { $low } et { $high }.
report-exchanges-times = { $side } : { $reason }, { $times } fois
report-exchanges-cut-off = en cours quand le temps de l’échantillon était écoulé
report-exchanges-not-begun = pas commencés à temps
report-exchanges-at-connect = connexion : { $why }
report-exchanges-at-answer = réponse : { $why }
report-exchanges-timed-out = délai dépassé
report-exchanges-connection-timed-out = délai de connexion dépassé
report-exchanges-closed-early = fermée trop tôt
report-exchanges-more-than-asked = plus que demandé
report-exchanges-refused = connexion refusée
report-exchanges-reset = connexion réinitialisée par l’autre bout
report-exchanges-broken-pipe = connexion rompue
report-exchanges-no-route = aucune route vers l’hôte
report-exchanges-unreachable = réseau injoignable
report-exchanges-network-down = réseau inactif
report-exchanges-no-port = plus de port local libre
report-exchanges-no-files = trop de fichiers ouverts
report-exchanges-no-buffers = plus de place dans les tampons
report-exchanges-denied = permission refusée
report-exchanges-not-permitted = opération non permise

# Face à un enregistrement précédent.
report-against = Face à l’enregistrement précédent
report-against-nothing = Les deux enregistrements n’ont aucune comparaison en commun.
report-against-share-then = part avant
report-against-tunnel-then = tunnel avant
report-against-now = maintenant
report-against-machines = Ce qui diffère dans les machines :
report-against-unclear = sans changement net
report-against-better = mieux
report-against-worse = moins bien
report-fact-kernel = noyau
report-fact-system = système
report-fact-cpu = processeur
report-fact-cores = cœurs en ligne
report-fact-governor = gouverneur
report-fact-program = programme { $name }
report-fact-mtu = MTU de { $link }
report-fact-qdisc = qdisc de { $link }
report-fact-feature = { $feature } de { $link }
report-fact-on = activé
report-fact-off = désactivé
report-fact-implementation = implémentation du tunnel
report-fact-by-kernel = noyau
report-fact-by-program = espace utilisateur, { $program }
report-fact-by-userspace = espace utilisateur, programme inconnu
report-fact-buffer = tampon de réception du socket { $family } du tunnel
report-fact-rules = règles du pare-feu
report-fact-absent = absent

# Les tunes. $left est l’un des report-tune-left…
report-tune-recovered = { $host } : laissé par un tune précédent : { $what }
report-tune-not-tried = Non essayé
report-tune-left = reste : { $codes }
report-tune-left-nothing = plus rien n’est à corriger
report-tune-left-unknown = ce qui reste n’a pas pu être établi avec certitude
report-tune-nothing-tried = sur { $interface } ; { $left }.
report-tune-nothing-kept = sur { $tried ->
    [one] { $tried } remède essayé sur { $interface }
   *[other] { $tried } remèdes essayés sur { $interface }
 } : tout est comme avant ; { $left }.
report-tune-kept = sur { $tried ->
    [one] { $tried } remède essayé sur { $interface }
   *[other] { $tried } remèdes essayés sur { $interface }
 }, gain mesuré à l’appui ; { $left }.
report-tune-confirm = Tout sera remis comme avant dans { $time }, sauf confirmation :
report-tune-confirmed = Les changements sont confirmés. Ils tiennent jusqu’au prochain redémarrage.
report-keep-all = Pour les conserver après un redémarrage
report-tune-unchanged = aucun tune n’a rien changé
report-stage-before = avant
report-stage-after = après { $what }
report-experiment-kept = gardé
report-experiment-put-back = remis
report-experiment-gain = { $what } { $before } → { $after }, gain { $gain } (95 % : { $low } à { $high })
report-goal-goodput = débit utile
report-guard-held = tenu
report-guard-not-comparable = non comparable : autre charge auparavant
report-put-back = { $setting } : de nouveau { $before }
report-put-back-changed = { $setting } : changé entre-temps par quelqu’un d’autre, reste tel quel ({ $now }) ; c’était { $before }
report-put-back-gone = { $setting } : n’existe plus, et le changement non plus
report-put-back-failed = { $setting } : impossible de revenir à { $before } : { $why }
report-state-idle = aucun tune depuis le dernier redémarrage
report-state-at-work = un tune est en cours (processus { $process })
report-state-kept = des changements attendent confirmation ; remis comme avant dans { $time }
report-state-confirmed = les changements sont confirmés ; `wirespeed tune undo` les annule encore
report-state-undone = remis comme avant : { $why }
report-change-now = { $change }, maintenant { $now }
report-change-now-unknown = { $change }, valeur actuelle inconnue
report-plan-nothing = Rien à faire.
report-setting-mtu = MTU de { $interface }
report-setting-buffer = tampon de réception du socket de { $interface }
report-setting-congestion = contrôle de congestion des routes par { $interface }
report-setting-shaper = limite de débit de { $interface }
report-setting-ring = anneau de réception de { $interface }
report-setting-interrupt = cœurs de l’interruption { $interrupt }
report-setting-governor = gouverneur de fréquence
report-setting-napi = NAPI en threads de { $interface }
report-setting-offload = { $feature } de { $interface }

# La démonstration.
report-demo-as-it-was = tel quel
report-demo-shaped = limité à { $rate }
report-demo-buffers = tampons UDP de 25 Mo
report-demo-stages = Étape par étape, à côté d’un cas publié du même genre
report-demo-published = publié
report-demo-there = là-bas
report-demo-reached = Le chemin peut transporter { $possible } de charge utile par ce tunnel dans chaque sens ; atteint : { $reached } dans le moins bon sens.
report-demo-reached-unknown = On ignore quelle part de son chemin transporte le tunnel réparé.
report-demo-knobs = Chaque réglage, tel que les machines le disent elles-mêmes
report-demo-knob = réglage
report-demo-tuned = réglé
report-demo-undone = après annulation
report-demo-put-back = Tout est comme avant.
report-demo-not-put-back = TOUT n’est PAS comme avant.
report-demo-end = Il ne reste rien du chemin d’exercice. Le tout a pris { $time }.
report-demo-left = Reste du chemin d’exercice : { $left }.
