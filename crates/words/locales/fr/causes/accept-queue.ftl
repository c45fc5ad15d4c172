accept-queue-title = Les connexions arrivent plus vite qu’un programme ne les accepte
accept-queue-because = { $attempts } tentatives de connexion à { $host } ont trouvé pleine la file d’attente d’un programme en écoute et ont été rejetées : les clients doivent réessayer.
accept-queue-because-program = { $attempts } tentatives de connexion à { $host } ont trouvé pleine la file d’attente du programme en écoute { $program } et ont été rejetées : les clients doivent réessayer.
accept-queue-line-queue = file d’attente de { $listener } (`ss -lnt`) : longueur maximale, actuelle
accept-queue-remedy-program = Un backlog plus long dans les réglages du programme lui-même (nginx `listen … backlog=4096`, Apache `ListenBacklog`), ou davantage de processus qui acceptent
accept-queue-persistence-program = dans la configuration du programme
accept-queue-risk-program = un redémarrage du programme ; les clients attendent dans la file au lieu de réessayer
accept-queue-undo-program = l’ancienne valeur
accept-queue-remedy-limit = Des files d’attente allant jusqu’à { $queue } connexions pour les programmes qui en demandent ; ces programmes doivent être redémarrés
accept-queue-risk-limit = un peu de mémoire par connexion en attente
accept-queue-refused = un net.core.somaxconn plus grand sur { $host }
accept-queue-refused-why = il vaut déjà { $limit } : le programme demande moins, ou accepte trop lentement
