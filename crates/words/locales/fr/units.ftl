unit-packets = paquets
unit-segments = segments
unit-cores = cœurs
unit-microseconds = microsecondes
