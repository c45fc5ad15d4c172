softirq-budget-title = Le noyau prend trop peu de paquets à la fois
softirq-budget-because = { $cut ->
    [one] { $cut } tour de réception sur { $rounds } a été interrompu
   *[other] { $cut } tours de réception sur { $rounds } ont été interrompus
 } avant que les files ne soient vides, { $lost ->
    [one] { $lost } paquet s’est perdu
   *[other] { $lost } paquets se sont perdus
 } pendant ce temps, et aucun cœur n’était plein.
softirq-budget-line-rounds = tours NET_RX (/proc/softirqs), et ceux qui ont été interrompus (colonne 3 de softnet_stat), { $direction }
softirq-budget-line-lost = paquets reçus, et perdus pendant ce temps, { $direction }
softirq-budget-line-busiest = cœur le plus occupé, { $direction }
softirq-budget-remedy = { $packets } paquets et { NUMBER($milliseconds, minimumFractionDigits: 1, maximumFractionDigits: 1) } ms pour chaque tour de réception, pour toute la machine
softirq-budget-risk = les programmes attendent plus longtemps un cœur pendant que des paquets arrivent : jusqu’à { NUMBER($milliseconds, maximumFractionDigits: 0) } ms à chaque fois
softirq-budget-persistence = `{ $packets }` et `{ $time }` dans /etc/sysctl.d/90-wirespeed.conf
softirq-budget-remedy-hidden = Deux fois plus de paquets et deux fois plus de temps pour chaque tour de réception, pour toute la machine
softirq-budget-risk-hidden = les programmes attendent plus longtemps un cœur pendant que des paquets arrivent : jusqu’à { $time } microsecondes à chaque fois
softirq-budget-persistence-hidden = ce que dit alors `{ $command }`, dans /etc/sysctl.d/90-wirespeed.conf de l’hôte
softirq-budget-refused-weight = un net.core.dev_weight plus grand
softirq-budget-refused-why-weight = il ne compte que pour la file d’attente (backlog) ; les pilotes vident leurs anneaux par 64 paquets, quelle que soit sa valeur (process_backlog et netif_napi_add, net/core/dev.c)
softirq-budget-refused-why-time-stamps = il ne fait que reporter l’horodatage d’un paquet après RPS, et encore, là où quelque chose demande des horodatages (net_timestamp_check, net/core/dev.c)
# Un commentaire à la suite d’une commande.
softirq-budget-namespace = dans l’espace de noms de l’hôte
