ring-overflow-title = L’anneau de réception (ring) de la carte réseau déborde
