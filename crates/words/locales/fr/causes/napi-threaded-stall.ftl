napi-threaded-stall-title = Le tunnel du noyau ne reçoit plus rien d’un pair
napi-threaded-stall-because = { $peer } a une session et y a envoyé { $sent } octets, et { $received ->
    [0] pas un seul
   *[other] rien d’autre que des handshakes
 } n’est ressorti de { $place } : avec NAPI en threads, le noyau a perdu le réveil pour ce pair ({ $known ->
    [yes] son noyau est connu pour cela
    [perhaps] son noyau est peut-être l’un de ceux connus pour cela
   *[no] son noyau n’est pas de ceux connus pour cela
 }).
napi-threaded-stall-line-sent = envoyé par { $peer } en { NUMBER($seconds, maximumFractionDigits: 0) } s, et reçu de lui ici (`wg show NAME transfer`)
napi-threaded-stall-line-back = reçu d’ici par { $peer } pendant ce temps
napi-threaded-stall-line-kernel = noyau (`uname -r`)
napi-threaded-stall-line-kernels = noyaux connus pour cela
napi-threaded-stall-line-source = source
napi-threaded-stall-public = information publique
napi-threaded-stall-remedy = Recréer l’interface, sans NAPI en threads ; puis mettre le noyau à jour
napi-threaded-stall-risk = le tunnel est interrompu quelques secondes : ne pas le faire depuis une session qui passe par lui (systemd-run, ou la console) ; tous les pairs se partagent un cœur à la réception
napi-threaded-stall-unknown = { $place } : aucune des données que le pair envoie n’en ressort ; on ignore si la réception se fait dans des threads : { $because }
