# Ce qu’un tune essaie, garde et refuse.

tune-guard-loaded-rtt = l’aller-retour en charge
tune-guard-goodput = le débit
tune-guard-drops = les rejets
tune-guard-cpu-per-byte = le temps processeur par octet
tune-why-too-few = non prouvé : seules { $pairs } paires sur { $of } ont pu être comparées
tune-why-worse = cela a empiré les choses, sur { $pairs ->
    [one] { $pairs } paire
   *[other] { $pairs } paires
 }
tune-why-not-proved = non prouvé : l’intervalle du gain contient zéro sur { $pairs ->
    [one] { $pairs } paire
   *[other] { $pairs } paires
 }
tune-why-little-goodput = prouvé, mais moins de { $least } : cela ne vaut pas un changement
tune-why-little-rtt = prouvé, mais moins de { $least } ou de 1 ms : cela ne vaut pas un changement
tune-why-price = un gain, mais qui se paie ; ce qui a empiré : { $guards }
tune-why-kept = l’intervalle du gain exclut zéro sur { $pairs } paires, et aucun garde-fou n’a empiré
tune-why-kept-apart = l’intervalle du gain exclut zéro sur { $pairs } paires ; pas comparable, car la charge d’avant était autre : { $guards }
tune-why-both = { $why } (moyenne des deux sens)
tune-why-put-back = { $before } ; remis en place ensuite : { $why }

tune-step-diagnosing = diagnostic
tune-step-diagnosing-again = nouveau diagnostic
tune-step-as-it-was = { $code } : paire { $pair } sur { $pairs }, comme avant
tune-step-changed = { $code } : paire { $pair } sur { $pairs }, changé

tune-ended-put-back = tout a été remis en place : { $error }
tune-ended-time = le temps est écoulé : l’expérience suivante prend environ { $seconds } s ; en donner plus avec un plus grand --budget
tune-ended-failed = l’expérience pour { $code } a échoué : { $error }
tune-not-tried = { $code } : { $remedy }
tune-not-tried-far = il change, à l’autre bout où wirespeed ne tourne pas (--far ssh://…) : { $setting }

# Le script de --plan ; chaque message est une ligne de commentaire.
tune-plan-head = Sur { $host } : ce que `wirespeed tune` essaierait, un remède à la fois, en ne gardant que ce dont l’aide est mesurée.
tune-plan-by-hand = À la main : lancer un bloc, mesurer, et revenir en arrière par ses lignes d’annulation s’il n’aide pas.
tune-plan-finding = { $code } sur { $host } : { $because }
tune-plan-risk = Risque : { $risk }
tune-plan-line-by-hand = à la main : { $line }
tune-plan-line-undo = annulation : { $line }
tune-plan-keep = Pour le conserver après un redémarrage : { $how }

# Pourquoi quelque chose a été remis en place.
tune-reason-asked = à la demande de l’utilisateur
tune-reason-nobody = personne n’a confirmé à temps
tune-reason-nothing-kept = rien n’a été gardé
tune-reason-journal = le journal a été supprimé
tune-reason-program = le programme qui faisait les changements s’est terminé
tune-reason-both-ended = le programme et son gardien s’étaient terminés
tune-reason-watchdog = le gardien s’était terminé
tune-reason-far = l’autre bout n’a pas pu commencer
tune-reason-told-to-end = le gardien a reçu l’ordre de finir ({ $signal })
tune-reason-nothing-heard = l’expérience n’a donné aucun signe pendant { $seconds } s
tune-reason-no-traffic = le tunnel ne faisait plus rien passer : aucune réponse d’écho pendant { $seconds } s
tune-reason-all = tout a été remis en place : { $why }
tune-reason-all-before = tout a été remis en place avant d’être confirmé : { $why }

# Ce qu’un tune n’a pas pu faire.
tune-error-state = impossible de { $doing } { $path } : { $error } ; rien n’a été changé. Lancer en tant que root, ou nommer dans WIRESPEED_STATE un répertoire où l’on peut écrire
tune-error-not-recorded = ce qui pouvait l’être a été remis en place, mais l’écrire dans { $path } a échoué : { $error } ; y faire de la place, puis lancer `wirespeed tune undo`
tune-error-journal = le journal { $path } est illisible ({ $why }) ; il dit comment remettre les choses en place : le regarder avant de le supprimer
tune-error-held = un autre wirespeed tune est à l’œuvre ici : { $holder } ; l’attendre, ou y mettre fin par `wirespeed tune undo` (ou `wirespeed tune confirm`, une fois ses expériences finies)
tune-error-not-begun = ce programme n’a commencé aucun tune ; rien n’a été changé
tune-error-not-armed = le gardien n’a pas démarré ({ $why }) ; rien n’a été changé
tune-error-over = l’expérience est terminée : { $why }
tune-error-nothing-kept = aucun changement n’attend d’être confirmé ici ; voir `wirespeed tune status`
tune-error-changed-by-others = quelqu’un d’autre a changé ceci entre-temps : { $setting } (maintenant { $now }) ; son changement a été laissé en place et l’expérience abandonnée
tune-error-at = { $machine } : { $message }
tune-error-diagnosis = le diagnostic a échoué : { $why }
tune-error-stopped = arrêté ; tout a été remis en place
tune-doing-finding = trouver
tune-doing-creating = créer
tune-doing-looking = examiner
tune-doing-using = utiliser
tune-doing-reading = lire
tune-doing-locking = verrouiller
tune-doing-archiving = archiver le journal sous
tune-doing-writing = écrire le journal
