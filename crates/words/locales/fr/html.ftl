# Le rapport pour un navigateur.

html-kind-test = Mesure
html-kind-doctor = Diagnostic
html-kind-tune = Tune
html-kind-hops = Saut par saut
html-far = l’autre bout
html-road = chemin nu
html-tunnel = tunnel
html-without = sans le changement
html-with = avec

# La réponse.
html-healthy = Sain
html-slow = Trop lent
html-unmeasured = Non mesuré
html-incomplete = Incomplet
html-watched = Observé
html-findings-count = { $count ->
    [one] { $count } constat
   *[other] { $count } constats
}
html-nothing-wrong = Rien d’anormal.
html-nothing-shows = Rien d’anormal ne se voit.
html-nothing-measured = Rien n’a pu être mesuré.
html-too-little = Rien n’a été trouvé, mais c’est trop peu pour dire le tunnel sain : voir ce qui n’a pas été vérifié.
html-doctor-finds-out = wirespeed doctor en trouve la cause.
html-tile-of = { $tunnel } sur { $bare } du chemin nu
html-tile-no-road = par le tunnel ; le chemin nu n’a pas été mesuré
html-tile-rtt = Aller-retour
html-tile-rtt-loaded = au repos, et jusqu’à { $time } en charge
html-tile-rtt-idle = au repos, par le tunnel

# Les constats.
html-findings = Constats
html-findings-left = Ce qui reste
html-severity-critical = critique
html-severity-warning = avertissement
html-severity-info = information
html-place = sur { $host }
html-place-direction = sur { $host }, { $direction }
html-sure = sûr à { $share }
html-explains = Cela explique aussi :
html-evidence = Ce qui le montre
html-evidence-what = Compteur, fichier ou sonde
html-evidence-where = Où
html-evidence-before = Avant, ou la référence
html-evidence-after = Après, ou mesuré
html-fix = Laisser wirespeed l’essayer
html-fix-note = Essaie le remède, mesure tour à tour avec et sans lui, ne le garde que si le gain est prouvé, et remet tout en place si personne ne confirme.
html-remedies = { $count ->
    [one] Le remède
   *[other] Les remèdes, du plus ciblé au plus large
}
html-remedy-by-tune = Aucune commande ne le fait : `wirespeed tune` le fait.
html-remedy-notes = Risque, comment le conserver, comment l’annuler
html-risk = Risque
html-keep = Pour le conserver après un redémarrage
html-undo = Pour l’annuler
html-refused = Ce qui n’aiderait pas
html-refused-here = Ce qui n’aiderait pas ici
html-read-on = Pour en savoir plus :
html-missing = Ni mesuré ni vérifié

# Les graphiques.
html-charts = Graphiques
html-no-chart = Pas de graphique.
html-no-loads = aucune charge
html-row-words = { $name } : { $text }.
html-row-detail = { $text } ({ $detail })
html-with-interval = { $value } ({ $low } à { $high })
html-interval = { $low } à { $high }
html-more = { $count ->
    [one] et { $count } de plus
   *[other] et { $count } de plus
}
html-shares-title = Ce que le tunnel transporte de son chemin nu
html-shares-caption = Point : médiane des paires. Barre : intervalle de confiance à 95 %.
html-shares-limit = sain : { $share }
html-shares-absent = Aucune charge n’a été mesurée à la fois hors du tunnel et par le tunnel.
html-shares-absent-because = Le chemin nu n’a pas pu être mesuré : { $why }
html-throughput-title = Débit : { $what }
html-throughput-words = { $runs ->
    [one] { $side } : une mesure, { $median }.
   *[other] { $side } : { $runs } mesures, médiane { $median }, entre { $low } et { $high }.
}
html-throughput-stalled = { $count ->
    [one] L’une d’elles s’est bloquée.
   *[other] { $count } d’entre elles se sont bloquées.
}
html-throughput-absent = Aucune charge n’a été envoyée : il n’y a pas de débit à montrer.
html-caption-step = Les mesures dans l’ordre, un point pour { $step } s.
html-caption-means = Les mesures dans l’ordre. Là où l’enregistrement n’a pas de valeurs seconde par seconde, la moyenne de la mesure.
html-caption-warm-up = Le début estompé d’une mesure est sa mise en route, qui ne compte pas.
html-seconds-of-load = secondes de charge
html-window-title = Fenêtre et retransmissions : { $what }
html-window-panel = Fenêtre de congestion
html-retransmits-panel = Segments retransmis
html-window-words = { $side } : fenêtre médiane { $median }, entre { $low } et { $high }.
html-retransmits-words = { $count ->
    [one] { $side } : { $count } segment retransmis.
   *[other] { $side } : { $count } segments retransmis.
}
html-window-unknown = l’émetteur n’a pas donné sa fenêtre
html-retransmits-unknown = l’émetteur n’a pas donné ses retransmissions
html-window-absent = L’émetteur n’a donné ni sa fenêtre de congestion ni ses retransmissions ; en UDP, il n’y a ni l’une ni les autres.
html-window-absent-no-load = Aucune charge n’a été envoyée : il n’y a pas de fenêtre à montrer.
html-rtt-title = Aller-retour, au repos et en charge
html-rtt-caption = Point : médiane. Barre : du plus court au 95ᵉ centile. Demandes d’écho par la même voie que la charge.
html-rtt-caption-soaks = Les longues charges sont celles de plusieurs flux.
html-rtt-idle-road = au repos, chemin nu
html-rtt-idle-tunnel = au repos, tunnel
html-rtt-loaded-road = chemin nu, { $what }
html-rtt-loaded-tunnel = tunnel, { $what }
html-rtt-soak-road = chemin nu, longue charge, { $direction }
html-rtt-soak-tunnel = tunnel, longue charge, { $direction }
html-rtt-high = 95 % : { $high }
html-rtt-absent = Aucune demande d’écho n’a été envoyée.
html-rtt-absent-because = Aucun aller-retour n’a été mesuré : { $why }
html-rtt-stage-idle = { $stage }, au repos
html-rtt-stage-loaded = { $stage }, en charge
html-rtt-stages-caption = Médianes à travers le tunnel ; en charge, celle du sens le plus mauvais. Demandes d’écho par la même voie que la charge.
html-rtt-loads-title = Aller-retour en charge : { $what }
html-rtt-loads-absent = Aucune demande d’écho n’a eu de réponse pendant ces charges : il n’y a pas d’aller-retour à montrer.
html-rtt-all = au moins { $min }, médiane { $median }, { $high } à 95 %
html-rtt-no-reply = { $sent ->
    [one] pas de réponse à { $sent } demande
   *[other] pas de réponse à { $sent } demandes
}
html-not-known = inconnu : { $why }
html-heat-title = Cœurs : { $host }
html-heat-caption = Part du temps où chaque cœur (ligne) était occupé pendant chaque mesure (colonne), tous travaux confondus.
html-heat-caption-watched = Part du temps où chaque cœur (ligne) était occupé pendant chaque tranche de l’observation (colonne), tous travaux confondus.
html-heat-caption-together = { $count ->
    [one] Une mesure par colonne.
   *[other] { $count } mesures voisines par colonne.
}
html-heat-caption-together-watched = { $count ->
    [one] Une tranche par colonne.
   *[other] { $count } tranches voisines par colonne.
}
html-heat-caption-groups = { $count ->
    [one] Un autre groupe de mesures n’est pas montré.
   *[other] { $count } autres groupes de mesures ne sont pas montrés.
}
html-heat-caption-cores = Les { $shown } cœurs les plus occupés sur { $count }.
html-heat-from = dès { $share }
html-heat-words = { $cores ->
    [one] Un cœur, occupé jusqu’à { $busy } d’une mesure.
   *[other] { $cores } cœurs. Le plus occupé, le cœur { $core }, l’était jusqu’à { $busy } d’une mesure.
}
html-heat-words-watched = { $cores ->
    [one] Un cœur, occupé jusqu’à { $busy } d’une tranche.
   *[other] { $cores } cœurs. Le plus occupé, le cœur { $core }, l’était jusqu’à { $busy } d’une tranche.
}
html-heat-words-group = { $name } : le cœur le plus occupé, { $busy } en moyenne.
html-heat-absent = wirespeed n’y était pas, ou aucune charge n’a été envoyée : les temps des cœurs ne sont pas dans l’enregistrement.
html-drops-title = Rejets pendant que le tunnel était en charge
html-drops-caption = Paquets d’après les compteurs du noyau, toutes les charges par le tunnel ensemble.
html-drops-title-watched = Rejets pendant l’observation
html-drops-caption-watched = Paquets d’après les compteurs du noyau, sur toute l’observation.
html-drops-sockets = sockets UDP
html-drops-name = { $place } sur { $host }
html-drops-none = Aucun compteur de rejets n’a bougé : rien n’a été rejeté sur ces machines.
html-drops-absent = Aucune charge n’est passée par le tunnel : aucun compteur n’a été lu.
html-sweep-title = Débits essayés, { $direction }
html-sweep-title-absent = Débits essayés
html-sweep-caption = { $found } À l’horizontale : le plafond. À la verticale : ce qui est arrivé. Pointillé : tout le plafond. Plafond posé par { $by }.
html-sweep-found = Le plus haut plafond qui reste stable est { $cap }.
html-sweep-none-stable = Aucun des plafonds essayés ne reste stable.
html-sweep-no-cap = sans plafond
html-sweep-stable = stable
html-sweep-unstable = instable
html-sweep-words-stable = { $cap } : { $goodput } à l’arrivée, stable.
html-sweep-words-unstable = { $cap } : { $goodput } à l’arrivée, instable.
html-sweep-absent = Aucun débit n’a été essayé : rien ne laissait penser à un effondrement au-delà d’un débit, et aucun balayage n’a été demandé.
html-gains-title = Ce que gagnent les remèdes
html-gains-title-goodput = Ce que chaque remède a gagné en débit utile
html-gains-title-rtt = De combien chaque remède a raccourci l’aller-retour en charge
html-gains-caption = Point : médiane des paires, tour à tour avec et sans. Barre : intervalle de confiance à 95 %. À droite du tireté, c’est mieux.
html-gains-absent = Aucun remède n’a été essayé.
html-gains-absent-doctor = Le docteur ne change rien : aucun remède n’a été essayé. wirespeed tune les essaie et mesure leur gain.
html-no-gain = aucun gain
html-trials-title = D’autres contrôles de congestion, essayés sur les sockets de wirespeed
html-trial-name = { $tried } au lieu de { $current }, { $direction }
html-helps = utile
html-no-clear-gain = pas de gain net
html-watched-title = Ce qui a circulé par { $interface }
html-watched-in = reçu
html-watched-out = envoyé
html-watched-words = { $side } : médiane { $median }, { $high } au plus.
html-watched-seconds = secondes
html-watched-absent = Cet enregistrement n’a pas les tranches de l’observation.
html-watched-group = observé, tranche par tranche

# Les tableaux.
html-measurements = Mesures
html-table-load = Charge
html-table-share = Part
html-table-interval = Intervalle à 95 %
html-table-pairs = Paires
html-table-pair = Paire
html-table-rtt-road = RTT en charge, chemin nu
html-table-rtt-tunnel = RTT en charge, tunnel
html-table-retransmits = Retransmis
html-table-direction = Sens
html-every-pair = Toutes les paires
html-probes = Sondes
html-probe-nothing = rien
html-probe-path = MTU du chemin, { $direction }
html-probe-inside = dans le tunnel, { $direction }
html-probe-passed = { $size } : passe
html-probe-failed = {" "}; { $size } : ne passe pas
html-probe-reported = {" "}; le chemin a signalé { $mtu }
html-probe-silent = {" "}; aucune erreur n’est revenue
html-probe-datagrams = datagrammes, { $direction }, { $side }
html-probe-datagrams-text = { $sent } à { $rate } : { $lost } perdus, { $late } déséquencés
html-exchange-intro = { $count ->
    [one] Échanges courts, un à la fois, chacun sur sa propre connexion.
   *[other] Échanges courts, { $count } à la fois, chacun sur sa propre connexion.
}
html-exchange-rate = Nouveaux par seconde
html-exchange-completed = Achevés
html-exchange-failed = Échoués
html-exchange-p50 = Durée médiane
html-exchange-p99 = 99 %
html-exchange-longest = Le plus long
html-exchange-ratio = Par le tunnel, { $value } des nouvelles connexions par seconde du chemin nu ; avec une confiance de 95 %, entre { $low } et { $high }.

# Les machines.
html-machines = Machines
html-machine-system = Système
html-machine-kernel = Noyau
html-machine-cpu = Processeur
html-machine-cores = { $count ->
    [one] { $count } cœur
   *[other] { $count } cœurs
}
html-machine-tunnel = Tunnel
html-machine-tunnel-text = { $name }, MTU { $mtu }, porté par { $by }
html-machine-by-kernel = le WireGuard du noyau
html-machine-by-program = { $program } (espace utilisateur)
html-machine-by-userspace = un WireGuard en espace utilisateur
html-machine-link = Sort par
html-machine-link-text = { $name } ({ $driver }), MTU { $mtu }
html-machine-peer = Pair
html-machine-peers = Pairs
html-machine-no-endpoint = sans adresse « endpoint »
html-machine-handshake = dernier handshake il y a { $age }
html-machine-no-handshake = jamais de handshake

# Un tune.
html-nothing-tried = Rien d’essayé
html-nothing-kept = Rien de gardé
html-kept-count = { $count ->
    [one] { $count } remède gardé
   *[other] { $count } remèdes gardés
}
html-tried-count = { $count ->
    [0] Aucun remède n’a été essayé.
    [one] Un remède a été essayé.
   *[other] { $count } remèdes ont été essayés, un à la fois.
}
html-nothing-left = Il ne reste rien à corriger.
html-left = Il reste : { $codes }.
html-left-unknown = Ce qui reste n’a pas pu être établi.
html-kept = gardé
html-put-back = remis en place
html-stages = Avant et après
html-stage = Le tunnel
html-stage-before = avant
html-stage-after = après { $code }
html-stage-upload = Envoi
html-stage-download = Réception
html-stage-rtt = RTT en charge
html-experiments = Ce qui a été essayé
html-change = { $what } : { $before } → { $after }
html-change-on = { $host }, { $what } : { $before } → { $after }
html-changes = { $count ->
    [one] { $count } changement
   *[other] Les { $count } changements
}
html-measured-goodput = Débit utile { $before } sans, { $after } avec.
html-measured-rtt = Aller-retour en charge { $before } sans, { $after } avec.
html-measured-gain = Gain { $gain }, avec une confiance de 95 % entre { $low } et { $high }.
html-comparisons-not-drawn = { $count ->
    [one] Une autre comparaison n’est pas dessinée : seules le sont les premières, et celles dont le tunnel porte le moins de son chemin.
   *[other] { $count } autres comparaisons ne sont pas dessinées : seules le sont les premières, et celles dont le tunnel porte le moins de son chemin.
}
html-loads-not-drawn = { $count ->
    [one] Les charges d’une autre expérience ne sont pas dessinées au fil du temps.
   *[other] Les charges de { $count } autres expériences ne sont pas dessinées au fil du temps.
}
html-guards = Ce qui ne doit pas empirer
html-guard = Garde-fou
html-guard-held = Tenu ?
html-guard-yes = tenu
html-guard-no = pire
html-guard-not-comparable = non comparable : une autre charge avant
html-guard-loaded-rtt = Aller-retour en charge
html-guard-goodput = Débit utile
html-guard-drops = Rejets
html-guard-cpu-per-byte = Temps processeur par octet
html-confirm = Tout est remis en place { $time } après le tune, sauf confirmation :
html-confirmed = Les changements sont confirmés. Ils tiennent jusqu’au prochain redémarrage.
html-how-to-undo = Pour tout remettre en place :
html-not-tried = Non essayé

# Les sauts.
html-hops = Les sauts
html-hops-chart = Chaque saut, hors de son tunnel et par le tunnel
html-hops-absent = Aucun saut n’a pu être mesuré.
html-hop = Saut
html-hop-name = { $from } → { $to }, { $direction }
html-hop-whole = tous ensemble, { $direction }
html-hop-all = tous ensemble
html-hop-words = { $name } : chemin nu { $road }, tunnel { $tunnel }.
html-hop-doctor = Le docteur sur le pire saut : { $what }
html-should = Attendu
html-should-good = au moins { $least } : atteint
html-should-below = au moins { $least } : pas atteint
html-should-unknown = au moins { $least } : inconnu

# Au pied.
html-footer-how = Les charges hors du tunnel et par le tunnel ont été mesurées tour à tour, paire par paire, sans leur mise en route. Une part est la médiane des paires, avec un intervalle de confiance à 95 % (bootstrap). Les débits sont ceux de ce qui est arrivé.
html-footer-tune = Les charges par le tunnel ont été mesurées tour à tour sans chaque changement et avec, paire par paire, sans leur mise en route. Un gain est la médiane des paires, avec un intervalle de confiance à 95 % (bootstrap). Les débits sont ceux de ce qui est arrivé.
html-footer-watched = Rien n’a été envoyé : ce qui est montré a circulé de soi-même, d’après les compteurs des machines.
html-footer-made = Produit par wirespeed { $version }. Ce fichier ne charge rien depuis le réseau et n’exécute aucun script.

# Sur la ligne de commande.
html-is-directory = --html { $path } : c’est un répertoire
html-is-directory-todo = nommer un fichier : --html { $path }
