path-slow-title = Le chemin lui-même est lent ; le tunnel n’y est pour rien
