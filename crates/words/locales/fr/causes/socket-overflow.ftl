socket-overflow-title = Le socket UDP du tunnel déborde
socket-overflow-because = Le socket de { $program } a rejeté { $dropped ->
    [one] { $dropped } paquet
   *[other] { $dropped } paquets
 } sur { $packets } parce que son tampon de { $buffer } octets était plein.
socket-overflow-because-daemon = Le socket du démon a rejeté { $dropped ->
    [one] { $dropped } paquet
   *[other] { $dropped } paquets
 } sur { $packets } parce que son tampon de { $buffer } octets était plein.
socket-overflow-because-watched = Le socket UDP de { $interface } a rejeté { $dropped ->
    [one] { $dropped } paquet
   *[other] { $dropped } paquets
 } pendant l’observation : il en contient trop peu, ou son démon a trop peu de temps de processeur.
socket-overflow-line-watched = paquets reçus par le tunnel, et rejetés par son socket UDP (SK_MEMINFO), pendant l’observation
socket-overflow-line-drops = rejets SK_MEMINFO du socket du tunnel, { $direction }, face aux paquets reçus
socket-overflow-line-buffer = tampon de réception du socket de { $program } ({ $local })
socket-overflow-line-buffer-daemon = tampon de réception du socket du démon ({ $local })
socket-overflow-line-errors = Udp RcvbufErrors, { $direction }
socket-overflow-remedy-this-socket = Un tampon de réception de { $mebibytes } Mio pour ce socket, dans le démon en marche
socket-overflow-persistence-this-socket = dure autant que le démon ; pour le conserver : de plus grandes valeurs par défaut pour tous les sockets, ou un démon qui fixe lui-même ses tampons
socket-overflow-risk-this-socket = jusqu’à autant de mémoire pendant que des paquets attendent ; une file d’attente plus longue avant la perte
socket-overflow-undo-this-socket = ramener le tampon de { $interface } à { $buffer } octets (`wirespeed tune undo --far …`), ou redémarrer le démon
socket-overflow-remedy-every-socket = Un plus grand tampon par défaut pour tous les sockets de la machine, puis un redémarrage du démon
socket-overflow-persistence-every-socket = `net.core.rmem_max = { $bytes }` et `net.core.rmem_default = { $bytes }` dans /etc/sysctl.d/90-wirespeed.conf
socket-overflow-risk-every-socket = tous les sockets de la machine ; le redémarrage coupe le tunnel : pas depuis une session qui passe par ce tunnel (systemd-run, ou la console)
socket-overflow-refused = de plus grands tampons de socket (net.core.rmem_max, rmem_default) sur { $host }
socket-overflow-refused-why = les tampons de socket ne servent à rien ici : le gestionnaire d’encapsulation du noyau (encap handler) prend le paquet avant la file du socket (drivers/net/wireguard/socket.c)
socket-overflow-refused-roomy = un tampon de réception encore plus grand pour ce socket
socket-overflow-refused-why-roomy = il contient déjà { $mebibytes } Mio : ce qui le remplit attend le processeur, non de la place, et ne ferait qu’attendre plus longtemps
socket-overflow-refused-defaults = de plus grandes valeurs par défaut (net.core.rmem_max, rmem_default) sur { $host }
socket-overflow-refused-why-defaults = { $program } fixe lui-même la taille de ses sockets et peut dépasser la limite (SO_RCVBUFFORCE) : aucune valeur par défaut ne compte
socket-overflow-unknown-tunnel = le socket du tunnel sur { $host } n’est pas connu
socket-overflow-unknown-sockets = les sockets de { $interface } ne sont pas connus : { $because }
socket-overflow-unknown-load = { $host } : { $why }
socket-overflow-unknown-how = comment le socket se comporte
# Commentaires à la suite des commandes.
socket-overflow-note = dans l’espace de noms de l’hôte : la noter pour revenir en arrière
socket-overflow-noted = ce qui a été noté
