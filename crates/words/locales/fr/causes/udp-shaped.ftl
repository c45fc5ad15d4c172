udp-shaped-title = Le chemin ralentit UDP, ou le port du tunnel, et non TCP
