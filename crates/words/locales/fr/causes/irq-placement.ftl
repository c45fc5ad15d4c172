irq-placement-title = Les interruptions de la carte réseau vont aux mauvais cœurs
irq-placement-because-crowded = { $share } des interruptions de { $card }, venues de { $queues } files d’attente, vont au cœur { $core }, occupé à { $busy } alors que les autres ont de la place.
irq-placement-because-wandering = irqbalance a déplacé les interruptions de { $card } entre les mesures, et chaque mesure où elles allaient au cœur { $slow } a été plus lente dans le tunnel que toutes celles où elles allaient au cœur { $fast }.
irq-placement-line-rates = débit utile TCP dans le tunnel, { $direction }, avec les interruptions sur le cœur { $slow } ({ $slower } mesures) et sur le cœur { $fast } ({ $faster } mesures)
irq-placement-line-irqbalance = irqbalance tourne
irq-placement-line-interrupt = interruption { $number } ({ $name }), { $when } : toutes, et celles sur le cœur { $core } ({ $share })
irq-placement-remedy-spread = Un cœur à elle pour chaque file d’attente de { $card }
irq-placement-remedy-pin = Les interruptions de { $card } sur le cœur { $core } à demeure
irq-placement-risk = les autres interruptions et programmes de ces cœurs ; irqbalance les déplace de nouveau, sauf si on lui dit de ne pas y toucher
irq-placement-persistence = les mêmes lignes à chaque démarrage, les numéros étant retrouvés par leur nom dans /proc/interrupts (ils changent) ; là où irqbalance tourne, `IRQBALANCE_ARGS="{ $bans }"` dans /etc/default/irqbalance
irq-placement-refused = irqbalance activé ou arrêté par principe sur { $host }
irq-placement-refused-why = il a été mesuré tantôt plus rapide, tantôt plus lent avec WireGuard, selon le pare-feu et la machine : essayer, mesurer, garder le plus rapide
irq-placement-unknown = { $place } : on ignore si ses interruptions vont aux bons cœurs : { $because }
