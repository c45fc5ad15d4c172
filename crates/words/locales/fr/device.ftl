# Ce que wirespeed-device dit de lui-même, et comment le mettre à la place d’un autre démon.

device-line-dropped = rejetés par { $program }, { $direction } : { $reason }
device-line-engine = moteur et threads de travail de { $program }
device-line-worker = temps processeur de son thread de travail le plus chargé ({ $worker }), { $direction }
device-line-offload = déchargement { $offload } de { $program }
device-line-received = paquets reçus par appel système de { $program }, { $direction }
device-line-sent = paquets envoyés par appel système de { $program }, { $direction }
device-remedy-replace = En dernier recours : { $device } à la place de { $program }, car il prend moins de temps processeur par octet
device-risk-replace = le tunnel est coupé quelques secondes ; toutes les connexions qui sortent par lui attendent ou se rompent ; wg-quick préfère le WireGuard du noyau là où il existe
device-remedy-workers = Un thread de travail de { $program } par cœur, chacun avec son propre port UDP (--workers { $cores } --spread)
device-risk-workers = ne répartit que vers les pairs qui exécutent aussi wirespeed-device avec --spread, et exige un chemin qui laisse passer plus d’un port ; une connexion reste sur un seul cœur
device-risk-workers-unit = pour une interface lancée par { $unit } (une autre reste telle quelle, et prend --workers et --spread là où elle est lancée) ; l’interface disparaît et revient avec son démon, si bien que les adresses et les routes ne reviennent que là où quelque chose comme systemd-networkd les pose ; ne répartit que vers les pairs qui exécutent aussi { $program } avec --spread, et exige un chemin qui laisse passer plus d’un port ; une connexion reste sur un seul cœur
device-persistence = `Environment={ $variables }` sous [Service] dans `systemctl edit { $unit }`
