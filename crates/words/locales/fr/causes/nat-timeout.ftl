nat-timeout-title = Le tunnel s’endort derrière un NAT
nat-timeout-because = { $far } n’a pas pu joindre { $here } par le tunnel au repos tant que { $here } n’avait rien envoyé : un NAT ou un pare-feu du côté de { $here } oublie l’association du tunnel.
nat-timeout-because-one-sided = Le dernier handshake est périmé depuis longtemps, nous émettons, et rien ne revient : un NAT sur le chemin a peut-être oublié l’association (ou l’autre bout a disparu).
nat-timeout-line-far-first = demandes d’écho dans le tunnel au repos : envoyées, avec réponse
nat-timeout-line-far-again = les mêmes, de nouveau, le temps qu’un second handshake ait pu passer : envoyées, avec réponse
nat-timeout-line-here-then = puis demandes d’écho de ce côté-ci : envoyées, avec réponse
nat-timeout-line-far-after = puis les premières, de nouveau : envoyées, avec réponse
nat-timeout-line-translated = notre adresse telle que la voit le WireGuard de l’autre bout
nat-timeout-line-keepalive = keepalive persistant
nat-timeout-line-handshake = âge du dernier handshake
nat-timeout-line-silence = octets envoyés au pair et reçus de lui pendant ce temps
nat-timeout-remedy = PersistentKeepalive = { $seconds } du côté situé derrière le NAT
nat-timeout-persistence = `PersistentKeepalive = { $seconds }` sous [Peer] dans le fichier de wg-quick
nat-timeout-risk = un paquet toutes les { $seconds } s : un peu de batterie sur un téléphone
nat-timeout-unknown-far = { $far } est joint à l’adresse { $address }, qui n’est aucune des siennes ; on n’a pas vérifié qu’il le reste après un repos, puisqu’il a été le premier à émettre : lancer le diagnostic là-bas
nat-timeout-unknown-peer = le pair n’est pas connu
nat-timeout-unknown-watched = une simple observation ne vérifie pas que l’autre bout peut nous joindre par le tunnel au repos
nat-timeout-unknown-one-sided = rien ne tourne à l’autre bout, on ne sait donc pas s’il peut nous joindre par le tunnel au repos
nat-timeout-unknown-in-use = { $place } a transporté { $bytes } octets entre le début de cette exécution et l’essai – ceux d’autres programmes, de la connexion vers l’autre bout ou des charges de cette exécution elle-même –, rien ne pouvait donc l’oublier ; laisser le tunnel au repos quelques minutes, puis lancer `wirespeed doctor` pour lui seul, en joignant l’autre bout par l’extérieur
nat-timeout-unknown-handshake = { $far } n’a d’abord pas été entendu par le tunnel au repos, mais sa session était alors périmée, ou d’un âge inconnu : ce qu’il envoyait devait attendre un handshake, et on n’a pas vérifié qu’un second passait ; laisser le tunnel au repos quelques minutes, puis relancer le diagnostic
nat-timeout-unknown-session = { $far } n’a d’abord pas été entendu par le tunnel au repos, mais { $here } n’avait fait aucun handshake depuis que son interface est active : { $far } émettait donc dans une session que { $here } ne connaît pas ; laisser le tunnel au repos quelques minutes, puis relancer le diagnostic
