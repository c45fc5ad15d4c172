# Ce que les mesures disent d’elles-mêmes.

measure-here = cette machine
measure-far-end = l’autre bout
measure-what-exchanges = de nombreux échanges courts
measure-what-segmentation = la segmentation des datagrammes
measure-what-order = l’ordre de datagrammes numérotés
measure-what-watch = ce qui passe de soi-même
measure-what-path-mtu = la MTU du chemin
measure-what-sizes = les tailles dans le tunnel
measure-what-idle = qui répond dans le tunnel au repos
measure-what-download = le sens qui va de l’autre bout vers nous
measure-what-address-outside = l’adresse de l’autre bout hors du tunnel
measure-what-address-inside = l’adresse de l’autre bout dans le tunnel
measure-far-needed = wirespeed doit tourner à l’autre bout aussi (--far ssh://…)
measure-far-not-there = wirespeed n’y tourne pas (--far ssh://…)
measure-unheard = aucun datagramme n’est passé entre nous et { $to } (UDP) et retour ; un pare-feu laisse-t-il passer ce port ?
measure-no-echo = { $to } n’a répondu à aucune demande d’écho, de quelque taille que ce soit
measure-translated = nous sommes derrière une traduction d’adresses (vus de là-bas comme { $seen })
measure-own-address-unknown = notre adresse hors du tunnel n’est pas connue
measure-no-address-of-family = notre interface de tunnel n’a pas d’adresse de la même famille que l’autre bout
measure-never-outside = tout ce que { $machine } envoie à { $to } passe lui-même par un tunnel ; donner une autre --bare-address, ou y ajouter une route propre vers { $to }
measure-no-endpoint = le pair n’a pas d’adresse « endpoint » et l’autre bout n’a pas pu la dire ; donner --bare-address
measure-no-single-address = le pair n’a pas d’adresse unique parmi ses adresses autorisées ; donner --tunnel-address
measure-name-without-address = ce nom n’a pas d’adresse
measure-handshake-age = le dernier handshake date d’il y a { $seconds } s
measure-handshake-never = il n’y a jamais eu de handshake
measure-peer-gone = le pair n’est plus là
measure-endpoint-answers = son hôte { $host } répond hors du tunnel
measure-endpoint-silent = son adresse « endpoint » { $endpoint } ne répond pas non plus hors du tunnel
measure-endpoint-none = il n’a pas d’adresse « endpoint »
measure-rate-needs = un débit imposé demande wirespeed à l’autre bout (--far ssh://…), et une adresse à nous qu’il puisse atteindre
measure-load-limits = une charge a de 1 à 128 flux et dure 600 s au plus
measure-no-report = il n’a pas laissé de rapport
measure-iperf3-said = iperf3 a répondu : { $words }
measure-iperf3-ended = iperf3 s’est arrêté après { NUMBER($seconds, minimumFractionDigits: 1) } s : { $words }
measure-not-begun = l’essai n’a pas commencé en { NUMBER($seconds, minimumFractionDigits: 1) } s
measure-bare-stalled = le chemin nu est resté bloqué : rien n’est arrivé
measure-no-exchange-outside = aucun échange n’a abouti hors du tunnel ({ $why })
measure-no-reason = sans raison connue

# Les charges, en mots.
measure-load-outside = { $direction } hors du tunnel avec { $streams ->
    [one] un flux
   *[other] { $streams } flux
 }
measure-load-through = { $direction } dans le tunnel avec { $streams ->
    [one] un flux
   *[other] { $streams } flux
 }
measure-whole-chain = toute la chaîne
measure-other-tunnels = les autres tunnels entre { $from } et { $to } ({ $others })
measure-other-tunnels-because = seule { $taken } l’a été, celle qui a transporté le plus
measure-idle-hop = aller-retour au repos, de { $from } vers { $to }
measure-idle-chain = aller-retour au repos, toute la chaîne
measure-load-chain = toute la chaîne, { $direction }
measure-load-bare = de { $from } vers { $to } hors du tunnel, { $direction }
measure-load-tunnel = de { $from } vers { $to } dans le tunnel, { $direction }

# Ce qui est en train de se faire.
measure-step-compare = { $direction }, { $streams ->
    [one] un flux
   *[other] { $streams } flux
 } : paire { $pair }
measure-step-pair = paire { $pair } sur { $pairs }
measure-step-exchanges = { $at_once } connexions à la fois, paire { $pair } sur { $pairs }
measure-step-cap = un plafond de { NUMBER($rate, minimumFractionDigits: 3) } Mbit/s
measure-step-no-cap = sans plafond
measure-tcp-pacing = la cadence de TCP (pacing)
measure-step-watching = observation

# Les remarques d’une comparaison.
measure-remark-wide = après { $pairs } paires, l’intervalle est encore large
measure-remark-stalled = le tunnel est resté bloqué dans { $samples ->
    [one] le seul échantillon pris
   *[other] chacun des { $samples } échantillons
 } ; il n’en a pas été pris d’autres
measure-remark-no-exchange = aucun échange n’a abouti dans le tunnel en { $samples ->
    [one] un échantillon
   *[other] { $samples } échantillons
 } ; il n’en a pas été pris d’autres
measure-remark-prolonged = la fenêtre de l’émetteur oscille encore : échantillons prolongés à { $seconds } s
measure-remark-few-pairs = il n’y a eu de temps que pour { $taken ->
    [one] { $taken } paire
   *[other] { $taken } paires
 } sur { $least } au moins
measure-remark-time-spent = le temps était écoulé avant que l’intervalle ne soit étroit
measure-remark-one-pair = une seule paire : le rapport n’a pas d’intervalle
measure-remark-short = des échantillons de { NUMBER($seconds, minimumFractionDigits: 1) } s sont courts pour un aller-retour de { $milliseconds } ms

# Pourquoi quelque chose n’a pas pu être mesuré.
measure-listed-none = aucun
measure-listed-more = { $told } et { $more } de plus
measure-no-such-interface = { $machine } n’a pas d’interface WireGuard { $interface } ; ce qu’il y a : { $known }
measure-which-interface = { $count ->
    [0] nommer l’interface WireGuard à examiner : { $machine } n’en a aucune
   *[other] nommer l’interface WireGuard à examiner : { $machine } a { $known }
 }
measure-not-neighbours = { $here } et { $far } ne partagent ni tunnel WireGuard ni réseau ; nommer les machines dans l’ordre où le trafic les traverse
measure-interface-down = { $interface } sur { $machine } est inactive ; l’activer d’abord (ip link set { $interface } up, ou wg-quick up { $interface })
measure-interface-gone = { $interface } sur { $machine } a disparu depuis le début de la mesure : renommée ou supprimée ; ce qui a été mesuré entre-temps ne compte pas ; relancer la commande avec l’interface qu’il y a maintenant
measure-peers-unknown = les pairs de { $interface } sur { $machine } n’ont pas pu être lus : { $because } ; y lancer wirespeed en tant que root (sudo)
measure-daemon-not-asked = impossible d’interroger le démon derrière { $socket } : { $why } (il doit être en marche, et il faut être root)
measure-daemon-silent = le démon derrière { $socket } n’a pas donné de réponse entière en 1 s
measure-daemon-endless = le démon derrière { $socket } a répondu plus de 32 Mio
measure-daemon-refused = le démon a refusé de décrire l’interface : errno { $errno }
measure-kernel-refused = le noyau a refusé d’énumérer ses interfaces WireGuard : { $why }
measure-not-permitted = opération non permise
measure-no-such-file = aucun fichier ou dossier de ce nom
measure-permission-denied = permission refusée
measure-connection-refused = connexion refusée
measure-no-peers = { $interface } sur { $machine } n’a aucun pair ; en ajouter un (wg set { $interface } peer CLÉ …)
measure-which-peer = { $interface } sur { $machine } a { $count } pairs ; en choisir un avec --peer CLÉ : { $peers }
measure-no-such-peer = { $interface } sur { $machine } n’a pas de pair { $peer } ; ce qu’il y a : { $peers }
measure-wrong-far-end = { $far } n’a pas d’interface WireGuard qui ait la clé d’un pair de { $interface } sur { $here } et notre clé pour pair ; --far désigne-t-il bien l’autre bout de ce tunnel ?
measure-no-address = { $what } (tunnel { $interface } sur { $machine }) n’est pas connue : { $because }
measure-nothing-far = aucune charge n’est possible : il n’y a rien à l’autre bout ; donner --far ssh://… ou --far iperf3://…
measure-no-iperf3 = iperf3 n’a pas pu être lancé sur { $machine } : { $because } ; l’y installer (apt-get install iperf3)
measure-no-connection = { $machine } n’a pas pu se connecter au serveur iperf3 { $server } : { $because } ; un pare-feu les sépare-t-il, le serveur écoute-t-il ?
measure-server-busy = le serveur iperf3 { $server } est resté occupé par un autre essai pendant { $seconds } s ; réessayer plus tard
measure-load-failed = la charge ({ $load }) n’a pas tourné sur { $machine } : { $because }
measure-probe-failed = impossible de sonder depuis { $machine } ({ $what }) : { $because }
measure-tunnel-silent = { $interface } sur { $machine } : le pair { $peer } ne répond pas dans le tunnel ; { $because } ; est-il en marche à l’autre bout, et son port joignable ?
measure-stopped = arrêté avant la fin de la mesure

# Pourquoi une machine n’a pas pu être jointe.
reach-program-missing = { $machine } : impossible d’y lancer { $program } ({ $detail }) ; { $advice }
reach-install-there = y installer le même wirespeed, là où ssh le trouve (son paquet, ou une copie de ce programme dans /usr/local/bin), ou dire où il est (--far-program)
reach-install-again = l’installer de nouveau, ou dire où il est
reach-host-key = { $machine } : ssh ne fait pas confiance à la clé de l’hôte ({ $detail }) ; comparer la clé, puis se connecter une fois à la main par ssh pour l’accepter (sous sudo : sudo ssh)
reach-login = { $machine } : ssh n’a pas été admis ({ $detail }) ; wirespeed ne demande jamais de mot de passe : mettre en place une clé ou un agent pour que ssh vers cet hôte marche sans rien demander (sous sudo, c’est le ssh de root, avec les clés de root)
reach-unreachable = { $machine } : ssh n’y est pas arrivé ({ $detail }) ; vérifier l’adresse, le port et le pare-feu avec ssh à la main
reach-version = { $machine } : wirespeed y est en version { $theirs } (protocole { $their_protocol }), celui-ci est en version { $ours } (protocole { $our_protocol }) ; installer la même version sur les deux machines
reach-timed-out = { $machine } : { $operation } n’a pas répondu en { NUMBER($seconds, minimumFractionDigits: 1) } s{ $detail }
reach-not-called = { $machine } : { $operation } n’a pas été appelé : { $detail }
reach-answer = { $machine } : { $operation } a répondu sous une forme que ce wirespeed ne connaît pas : { $detail }

# Pourquoi un texte n’est pas un lieu où aller. La partie est namespace, user ou host.
reach-not-started = { $machine } : { $reason }
reach-no-namespace = il n’y a pas d’espace de noms réseau { $name } sur cette machine ({ $detail }) ; `ip netns list` montre ceux qu’il y a
reach-needs-root = entrer dans l’espace de noms réseau { $name } demande les droits de root ({ $detail }) ; lancer wirespeed en tant que root
reach-no-program = { $program } est introuvable sur cette machine ; installer { $package }
reach-program-not-run = { $program } n’a pas pu être lancé : { $detail }
reach-no-thread = cette machine n’a donné aucun fil d’exécution pour lui parler : { $detail } ; terminer d’abord d’autres programmes
reach-no-ssh-command = aucune commande ssh n’a été donnée pour l’atteindre
reach-iperf3-answers-nothing = un serveur iperf3 peut porter des charges, mais aucun wirespeed n’y répond ; pour ce que sait l’autre bout, donner --far ssh://[utilisateur@]hôte
reach-no-place = { $place } n’est pas un lieu où wirespeed puisse aller : { $reason } ; écrire here, netns:NOM, ssh://[utilisateur@]hôte[:port] ou iperf3://hôte[:port]
reach-place-unknown-way = il ne commence par aucun des moyens connus
reach-place-open-bracket = le crochet ouvert devant l’adresse n’est pas fermé
reach-place-behind-bracket = seul un port peut suivre le crochet
reach-place-no-brackets = une adresse IPv6 s’écrit entre crochets, comme [fd00::1]
reach-place-no-port = { $text } n’est pas un port
reach-place-port-zero = le port 0 n’existe pas
reach-place-namespace-path = un espace de noms est un nom, pas un chemin de fichier
reach-place-missing = { $part ->
    [namespace] l’espace de noms n’a pas de nom
    [user] il manque l’utilisateur devant @
   *[host] il manque l’hôte
 }
reach-place-like-an-option = { $part ->
    [namespace] un espace de noms qui commence par - passerait pour une option
    [user] un utilisateur qui commence par - passerait pour une option
   *[host] un hôte qui commence par - passerait pour une option
 }
reach-place-too-long = { $part ->
    [namespace] l’espace de noms dépasse { $most } octets
    [user] l’utilisateur dépasse { $most } octets
   *[host] l’hôte dépasse { $most } octets
 }
reach-place-character = { $part ->
    [namespace] { $character } ne peut pas faire partie d’un espace de noms
    [user] { $character } ne peut pas faire partie d’un utilisateur
   *[host] { $character } ne peut pas faire partie d’un hôte
 }
