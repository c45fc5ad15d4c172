path-reorder-title = Le chemin change l’ordre des paquets
path-reorder-because = { $share } des datagrammes envoyés hors du tunnel sont arrivés de { $from } vers { $to } derrière de plus récents, avec jusqu’à { $places } places de retard : le chemin lui-même change leur ordre, et TCP tient pour perdu ce qui est en retard.
path-reorder-line-datagrams = datagrammes numérotés hors du tunnel à { $rate } : reçus, et reçus après un plus récent, { $direction }
path-reorder-line-extent = le plus en retard : nombre de places, { $direction }
path-reorder-line-met = tcpi_reordering des charges du tunnel (3 = rien rencontré), { $direction }
path-reorder-line-again = segments retransmis dans le tunnel, et parmi eux pour rien (DSACK), { $direction }
path-reorder-refused = régler WireGuard, sa MTU, ses tampons ou ses files d’attente
path-reorder-refused-why = l’ordre se perd sur le chemin ; WireGuard accepte des paquets en retard de 8 000 places au plus (sa fenêtre anti-rejeu) et les transmet comme ils viennent. Montrer ces chiffres à l’exploitant de la ligne : des liens agrégés paquet par paquet font cela
path-reorder-not-counted = { $direction } : aucun datagramme n’a été compté hors du tunnel
path-reorder-watched = une simple observation n’envoie pas de datagrammes à compter
path-reorder-no-wirespeed = aucun wirespeed à l’autre bout ne compte les datagrammes
