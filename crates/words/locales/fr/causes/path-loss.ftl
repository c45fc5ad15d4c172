path-loss-title = Le chemin perd des paquets bien que rien ne le remplisse
path-loss-because = Sur { $sent } petits datagrammes envoyés hors du tunnel, { $lost } se sont perdus en route de { $from } vers { $to }, en { $places ->
    [one] un endroit
   *[other] { $places } endroits
 }, alors que rien ne remplissait le chemin : la ligne elle-même perd des paquets.
path-loss-because-softened = Sur { $sent } petits datagrammes envoyés hors du tunnel, { $lost } se sont perdus en route de { $from } vers { $to }, en { $places ->
    [one] un endroit
   *[other] { $places } endroits
 }, alors que rien ne remplissait le chemin : la ligne elle-même perd des paquets ; un autre contrôle de congestion les supporte mieux, mesures à l’appui.
path-loss-line-datagrams = datagrammes numérotés hors du tunnel, sans charge : envoyés et reçus, { $direction }
path-loss-line-share = part perdue : au moins, et comptée, { $direction }
path-loss-refused = régler WireGuard, sa MTU, ses tampons ou ses files d’attente
path-loss-refused-why = les paquets se perdent sur le chemin, avant qu’aucun tunnel n’y ait part : montrer ces chiffres à l’exploitant de la ligne
path-loss-not-counted = { $direction } : aucun datagramme n’a été compté hors du tunnel
path-loss-watched = une simple observation n’envoie pas de datagrammes à compter
path-loss-no-wirespeed = aucun wirespeed à l’autre bout ne compte les datagrammes
