one-core-bound-title = Un cœur est plein alors que les autres ont de la place
one-core-bound-because = Un cœur est occupé à { $busy } alors que les autres sont à { $others } et que le tunnel est plus lent que le chemin.
one-core-bound-because-confined = Un cœur est occupé à { $busy } alors que les autres sont à { $others } et que le tunnel est plus lent que le chemin ; { $program } ne peut employer que { $count ->
    [one] le cœur
   *[other] les cœurs
 } { $cpus }.
one-core-bound-daemon = le démon
one-core-bound-line-cores = cœurs que { $program } peut employer (Cpus_allowed_list)
one-core-bound-line-process = temps de processeur de { $process }, { $direction }
one-core-bound-remedy-every-core = Laisser le démon du tunnel employer tous les cœurs
one-core-bound-persistence-every-core = retirer taskset du lancement du démon, ou CPUAffinity= de son unité
one-core-bound-risk-every-core = quelqu’un l’a peut-être confiné à dessein
one-core-bound-remedy-steering = Étaler les paquets du tunnel sur les cœurs (RPS sur l’interface du tunnel)
one-core-bound-persistence-steering = la même ligne en PostUp dans le fichier de wg-quick
one-core-bound-risk-steering = coûte du débit quand les paquets sont petits et les cœurs peu nombreux : mesurer avant et après
one-core-bound-remedy-ports = Répartir les pairs sur les files de la carte (RSS selon les ports UDP)
one-core-bound-persistence-ports = les mêmes lignes en `post-up` de la carte dans /etc/network/interfaces, ou dans une unité lancée une fois le réseau en place
one-core-bound-risk-ports = les fragments UDP n’ont pas de ports : ils vont dans une autre file que le reste, et arrivent dans le désordre
one-core-bound-remedy-tunnels = Plusieurs tunnels entre les mêmes sites, avec le trafic réparti entre eux
one-core-bound-remedy-tunnels-or-device = Plusieurs tunnels entre les mêmes sites, avec le trafic réparti entre eux ; ou un plan de données qui emploie tous les cœurs : { $device } --workers N --spread, à mesurer face à celui du noyau
one-core-bound-risk-tunnels = un changement d’installation aux deux extrémités
