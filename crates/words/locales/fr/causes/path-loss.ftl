path-loss-title = Le chemin perd des paquets bien que rien ne le remplisse
