conntrack-full-title = Plus de place pour de nouvelles connexions dans le suivi de connexions
conntrack-full-because = La table du suivi de connexions de { $host } était remplie à { $fill } ({ $entries } connexions sur { $room }) : bientôt, les nouvelles seront refusées.
conntrack-full-because-refused = La table du suivi de connexions de { $host } était remplie à { $fill } ({ $entries } connexions sur { $room }) : { $refused ->
    [one] { $refused } paquet d’une nouvelle connexion a été jeté
   *[other] { $refused } paquets de nouvelles connexions ont été jetés
 }.
conntrack-full-because-displaced = La table du suivi de connexions de { $host } était remplie à { $fill } ({ $entries } connexions sur { $room }) : { $displaced ->
    [one] { $displaced } connexion a dû céder la place à une nouvelle
   *[other] { $displaced } connexions ont dû céder la place à de nouvelles
 }.
conntrack-full-line-table = net.netfilter.nf_conntrack_max, nf_conntrack_count (au plus plein)
conntrack-full-line-refused = paquets de nouvelles connexions jetés (`drop` dans /proc/net/stat/nf_conntrack)
conntrack-full-line-displaced = connexions évincées (`early_drop`)
conntrack-full-line-failed = entrées qui n’ont pas trouvé de place (`insert_failed`)
conntrack-full-remedy-room = De la place pour { $room } connexions
conntrack-full-risk-room = jusqu’à { $mebibytes } Mio de mémoire quand la table est pleine ; la limite est celle de l’hôte, à régler hors des conteneurs
conntrack-full-persistence-host = la même chose dans un fichier de /etc/sysctl.d, sur l’hôte
# Un commentaire à la suite des commandes.
conntrack-full-namespace = sur l’hôte lui-même, hors de son conteneur
conntrack-full-remedy-days = Oublier plus tôt les connexions mortes : au bout d’une heure au lieu de { $days ->
    [one] { $days } jour
   *[other] { $days } jours
 }
conntrack-full-remedy-minutes = Oublier plus tôt les connexions mortes : au bout d’une heure au lieu de { $minutes } minutes
conntrack-full-persistence-memory = `{ $setting }` dans /etc/sysctl.d/90-wirespeed.conf
conntrack-full-risk-memory = les connexions muettes plus longtemps perdent leur correspondance NAT et leur état
