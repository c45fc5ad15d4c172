cloud-limit-title = La limite du fournisseur de cloud est atteinte
cloud-limit-because = Le fournisseur a retenu ou jeté { $count ->
    [one] { $count } paquet
   *[other] { $count } paquets
 } de la carte { $interface } ({ $share } de ce qu’elle a transporté), parce que l’instance a épuisé son allocation { $allowance ->
    [bw_in] de débit entrant
    [bw_out] de débit sortant
    [pps] de paquets par seconde
   *[conntrack] de connexions suivies
 }.
cloud-limit-line-exceeded = paquets de la carte réseau, et { $statistic }, { $when }
cloud-limit-line-machine = machine (/sys/class/dmi/id)
cloud-limit-remedy-packets = Moins de paquets, et plus gros : des trames géantes (jumbo) là où tout le chemin les accepte (à l’intérieur d’un même VPC), et la MTU du tunnel augmentée d’autant
cloud-limit-risk-packets = au-delà de ce que prend un saut du chemin, ce sont des pertes : wirespeed doctor mesure la MTU du chemin
cloud-limit-remedy-untracked = Des règles de groupe de sécurité qui ne demandent pas de suivi (le port UDP du tunnel permis depuis 0.0.0.0/0 et ::/0, et tous les ports vers ces adresses dans l’autre sens), et des délais d’inactivité plus courts pour les connexions suivies
cloud-limit-risk-untracked = le groupe ne filtre plus ce port par connexion ni par adresse
cloud-limit-remedy-instance = Une instance plus grande, ou d’un type mieux doté en réseau ; ou le trafic réparti sur plusieurs instances
cloud-limit-risk-instance = le coût ; une coupure pendant le changement
cloud-limit-refused = tampons, anneaux (rings), budgets et autres sysctls sur { $host }
cloud-limit-refused-why = la limite est tenue hors de cette machine, par le fournisseur
