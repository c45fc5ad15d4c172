cpu-throttled-title = Le processeur est bridé
