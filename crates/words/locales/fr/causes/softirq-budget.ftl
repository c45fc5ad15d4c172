softirq-budget-title = Le noyau prend trop peu de paquets à la fois
