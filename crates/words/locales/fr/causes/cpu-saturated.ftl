cpu-saturated-title = Une machine n’a plus de temps de processeur
