# Pages de manuel : ce qui s’y trouve en plus de l’aide.

man-name = NOM
man-synopsis = SYNOPSIS
man-description = DESCRIPTION
man-commands = COMMANDES
man-files = FICHIERS
man-see-also = VOIR AUSSI

man-file-tune = Anciennes valeurs de ce que tune a changé, pour wirespeed-tune-undo(1).
man-file-lab = Labos en place.
man-file-control = Le socket de contrôle, auquel wg(8) s’adresse.
man-file-statistics = Répond à chaque connexion par ce que compte l’interface, en JSON.
