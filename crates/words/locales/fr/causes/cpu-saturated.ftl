cpu-saturated-title = Une machine n’a plus de temps de processeur
cpu-saturated-because = Tous les cœurs ensemble sont occupés à { $busy } pendant que le tunnel est en charge : il ne reste plus de processeur pour transporter davantage.
cpu-saturated-because-mostly = Tous les cœurs ensemble sont occupés à { $busy } pendant que le tunnel est en charge, surtout par { $process } : il ne reste plus de processeur pour transporter davantage.
cpu-saturated-because-busiest = Tous les cœurs ensemble sont occupés à { $busy } pendant que le tunnel est en charge, le processus le plus occupé étant { $process } avec { $used ->
    [one] { NUMBER($used, minimumFractionDigits: 1, maximumFractionDigits: 1) } cœur
   *[other] { NUMBER($used, minimumFractionDigits: 1, maximumFractionDigits: 1) } cœurs
 } sur { $cores } : il ne reste plus de processeur pour transporter davantage.
cpu-saturated-one-machine = { $here } et { $far } (une seule machine)
cpu-saturated-line-many = tous les cœurs, avec une connexion et avec beaucoup, { $direction }
cpu-saturated-line-process = temps de processeur de { $process }, { $direction }
cpu-saturated-remedy = Moins de travail par octet : déchargements (offloads) activés, moins de règles de pare-feu ; puis du matériel
cpu-saturated-remedy-userspace = Moins de travail par octet : déchargements (offloads) activés, moins de règles de pare-feu, le WireGuard du noyau là où le noyau l’a ; puis du matériel
cpu-saturated-risk-userspace = changer d’implémentation interrompt le tunnel quelques secondes
cpu-saturated-unknown-watched = les cœurs de { $host } étaient occupés à { $busy } pendant l’observation ; sans charge, on ne sait pas si cela retient le tunnel
cpu-saturated-unknown-stalled = le tunnel se bloque, si bien que ses charges ne disent rien des processeurs
cpu-saturated-unknown-time = le temps de processeur de { $host } pendant les charges n’est pas connu
cpu-saturated-unknown-load = à quel point les processeurs sont occupés
