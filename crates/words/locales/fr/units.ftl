unit-packets = paquets
