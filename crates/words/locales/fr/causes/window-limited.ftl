window-limited-title = Une connexion attend sa fenêtre, non le chemin
