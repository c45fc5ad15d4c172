# Ce que le programme dit de lui-même.

explain-list = Les causes que wirespeed connaît :
explain-list-more = wirespeed explain CODE en dit plus sur l’une d’elles.
explain-no-such-code = il n’y a pas de cause dont le code soit { $code }
explain-no-such-code-todo = wirespeed explain donne la liste de celles qu’il y a

# Ce qui n’a pas pu se faire.
cli-failure = { $what } ; { $todo }
cli-see-message = voir le message
cli-stopped = arrêté sur demande
cli-stopped-todo = relancer la commande au moment voulu
cli-stopped-put-back = tout a été remis comme avant
cli-no-interface-todo = mettre d’abord le tunnel en place (wg-quick up NOM), ou lancer wirespeed là où il est (dans son espace de noms réseau : ip netns exec NOM wirespeed …), en tant que root
cli-choose-among = choisir parmi { $names }
cli-further-command-todo = si c’est la commande { $command } qui est voulue : elle se met juste derrière tune, avant toute option (wirespeed tune { $command } …)
cli-not-read = { $path } n’a pas pu être lu : { $why }
cli-too-large = il dépasse { $most } octets
cli-not-that = ce n’est pas { $what } ({ $error })
cli-not-written = { $path } n’a pas pu être écrit : { $why }
cli-is-disk = c’est un disque ou une partition, et son contenu serait perdu
cli-not-written-todo = choisir un fichier dans un répertoire qui existe et où l’on peut écrire
cli-no-handler = impossible d’intercepter Ctrl-C : { $error }
cli-no-handler-todo = vérifier les limites de ce processus
cli-no-output = la sortie standard n’a pas pu être écrite : { $error }
cli-no-output-todo = vérifier où elle est redirigée
cli-no-json = le résultat ne peut pas s’écrire en JSON : { $error }
cli-no-json-todo = le signaler comme un défaut du programme
cli-left = reste { $time }

# Ce qui a été tapé.
cli-no-unit-of-rate = { $unit } n’est pas une unité de débit ; écrire comme 300mbit, 1.5gbit ou 64kbit
cli-rate-without-unit = { $text } n’a pas d’unité ; écrire par exemple 300mbit, 1.5gbit ou 64kbit
cli-no-rate = { $text } n’est pas un débit supérieur à zéro ; écrire comme 300mbit, 1.5gbit ou 64kbit
cli-no-unit-of-time = { $unit } n’est pas une unité de temps ; écrire comme 90s, 10m ou 1h
cli-no-time = { $text } n’est pas une durée supérieure à zéro ; écrire comme 90s, 10m ou 1h
cli-longer-than-a-week = { $text } est trop long ; une semaine est le maximum
cli-longer-than-an-hour = { $text } est trop long ; une heure est le maximum
cli-no-streams = { $text } n’est pas un nombre de flux entre 1 et 128
cli-no-connections = { $text } n’est pas un nombre de connexions entre 1 et 20000
cli-no-address = ce n’est pas une adresse IP

# Les enregistrements.
cli-recording = un enregistrement de wirespeed doctor
cli-recording-todo = wirespeed doctor --record FICHIER en fait un
cli-recording-anew = l’enregistrer de nouveau par wirespeed doctor --record FICHIER, ou omettre --from
cli-recording-refused = { $path } ne peut pas être le point de départ de ce tune : { $why }
cli-recording-of-another = il est d’un autre tunnel, ou d’une autre machine
cli-recording-too-old = il a plus de 15 minutes, ou vient du futur
cli-record = un enregistrement de wirespeed test
cli-record-todo = wirespeed test --output FICHIER en écrit un
cli-tune-record = l’enregistrement d’un tune
cli-tune-record-todo = voir ce que tune a dit plus haut

# Ce qui a été comparé, et les chaînes de machines.
cli-connections = { $at_once } connexions à la fois
cli-comparison = { $direction } avec { $streams ->
    [one] un flux
   *[other] { $streams } flux
 }
cli-hop-without-far = --hop demande le bout de la chaîne
cli-hop-without-far-todo = le nommer avec --far
cli-no-hop = { $place } ne peut pas être un saut : wirespeed doit y tourner
cli-no-hop-todo = donner ssh://HÔTE ou netns:NOM
cli-hop-not-seen = le docteur n’a pas pu examiner ce saut : { $error }
cli-quiet-tune = avec --quiet, personne n’apprend que ce que garde le tune sera remis comme avant faute de confirmation
cli-quiet-tune-todo = ajouter --yes pour confirmer aussitôt, ou --confirm-within DURÉE et lancer wirespeed tune confirm dans ce délai
cli-nothing-to-confirm = aucun changement n’attend d’être confirmé sur { $machines }
cli-nothing-to-confirm-todo = wirespeed tune status montre ce qu’il y a ; l’autre machine n’est interrogée qu’avec --far

# La démonstration.
cli-not-started = wirespeed n’a pas pu être lancé : { $error }
cli-not-started-todo = réessayer
cli-ended-with = `wirespeed { $command }` s’est terminé avec le code { $code }
cli-ended-with-todo = voir ce qu’il a dit plus haut
cli-ended-with-quiet-todo = si rien n’est dit ci-dessus, lancer wirespeed demo sans --quiet pour savoir pourquoi
cli-knob-mtu = MTU de { $link } sur { $host }
cli-knob-buffers = tampons de réception de { $link } sur { $host }
cli-knob-queueing = file d’attente de { $link } sur { $host }
cli-no-link = pas de tel lien
cli-left-namespace = espace de noms { $name }
cli-left-control = socket de contrôle de { $interface }
cli-left-statistics = socket de statistiques de { $interface }
cli-left-record = l’enregistrement du labo { $lab }

# Les labos.
cli-lab-gone = le labo { $lab } n’est plus là
cli-lab-left-behind-gone = le labo { $lab }, abandonné par un processus mort, n’est plus là
cli-scenarios = Scénarios :
cli-labs = Labos de cette machine :
cli-no-labs = aucun
cli-lab-up = en marche
cli-lab-building = en construction
cli-lab-left-behind = abandonné ; wirespeed lab down le supprime
cli-lab-of-another-version = d’une autre version de wirespeed ; wirespeed lab down { $lab } le supprime
cli-lab-goes-by-name = le labo { $lab } est d’une autre version de wirespeed ; wirespeed lab down { $lab } le supprime
cli-no-lab = il n’y a pas de labo
cli-no-lab-todo = wirespeed lab up SCÉNARIO en fait un
cli-several-labs = il y a plusieurs labos : { $names }
cli-several-labs-todo = nommer le bon
cli-head-host = hôte
cli-head-namespace = espace de noms
cli-head-road = chemin
cli-head-tunnel = tunnel
cli-head-site = site
cli-head-interface = interface
cli-note = remarque
cli-nobody-yet = personne encore
cli-carried-by = porté par { $carrier }
cli-go-on = Continuer ainsi (le docteur devrait trouver { $finding }) :
cli-lab-state = { $scenario }, tunnel porté par { $carrier }
