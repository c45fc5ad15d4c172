path-reorder-title = Le chemin change l’ordre des paquets
