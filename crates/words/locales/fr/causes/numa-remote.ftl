numa-remote-title = Les paquets de la carte réseau sont reçus sur un autre nœud NUMA
