# Les mots communs.

yes = oui
no = non
direction-upload = envoi
direction-download = réception
