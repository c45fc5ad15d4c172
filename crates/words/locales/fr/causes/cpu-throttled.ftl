cpu-throttled-title = Le processeur est bridé
cpu-throttled-because-steal = L’hyperviseur a donné à d’autres { $share } du temps de processeur de cette machine pendant que le tunnel était en charge.
cpu-throttled-line-steal = /proc/stat steal (temps volé), moyenne de tous les cœurs, { $direction }
cpu-throttled-line-hypervisor = hyperviseur
cpu-throttled-remedy-steal = Une instance avec plus de cœurs, ou avec ses propres cœurs ; sur un hôte à soi, moins d’invités par cœur ; si l’instance vit de crédits, une qui n’en vit pas
cpu-throttled-risk-steal = le coût
cpu-throttled-because-group = Le démon du tunnel a droit à { $cores ->
    [one] { NUMBER($cores, minimumFractionDigits: 2, maximumFractionDigits: 2) } cœur
   *[other] { NUMBER($cores, minimumFractionDigits: 2, maximumFractionDigits: 2) } cœurs
 } ({ $group }), et dans { $throttled } périodes sur { $periods } il avait épuisé cette allocation et attendait.
cpu-throttled-line-periods = périodes, et celles où son allocation était épuisée (cpu.stat nr_throttled), { $when }
cpu-throttled-line-waited = temps que ses threads ont passé à attendre la période suivante, { $when }
cpu-throttled-line-allowance = allocation (cpu.max)
cpu-throttled-remedy-group = Une allocation de processeur plus large pour le démon du tunnel, ou aucune limite
cpu-throttled-risk-group = quelqu’un l’a peut-être limité à dessein : le reste du travail de la machine en reçoit moins
cpu-throttled-persistence-unit = retirer CPUQuota= de l’unité : systemctl edit { $unit }
cpu-throttled-persistence-container = là où le conteneur ou le groupe est créé (docker --cpus, resources.limits.cpu d’un pod, cpu.max)
cpu-throttled-because-heat = Le processeur a ralenti { $events } fois à cause de sa chaleur pendant que le tunnel était en charge et qu’un cœur n’avait rien à céder.
cpu-throttled-line-heat = événements thermal_throttle des cœurs et du boîtier (package), { $direction }
cpu-throttled-remedy-heat = Le refroidissement : ventilateurs, poussière, la pièce ; ou moins de cœurs en boost
cpu-throttled-risk-heat = une coupure pendant l’intervention
cpu-throttled-because-capped = Les cœurs sont pleins, et n’ont droit qu’à { NUMBER($allowed, minimumFractionDigits: 1, maximumFractionDigits: 1) } GHz sur les { NUMBER($maximum, minimumFractionDigits: 1, maximumFractionDigits: 1) } GHz du processeur.
cpu-throttled-because-governor = Les cœurs sont pleins, et il se peut que le gouverneur { $governor } maintienne leur fréquence basse.
cpu-throttled-line-frequency = fréquence maximale : celle du processeur, et celle permise (scaling_max_freq)
cpu-throttled-remedy-governor = Le gouverneur { $governor } à la place de { $now }
cpu-throttled-remedy-uncapped = Permettre au processeur sa propre fréquence maximale
cpu-throttled-persistence-uncapped = là où elle est réglée à présent : tuned, tlp, cpupower, le microprogramme
cpu-throttled-risk-frequency = consommation et chaleur
