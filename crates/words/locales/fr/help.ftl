# L’aide, d’après la définition de la ligne de commande : help-COMMANDE pour ce que fait une commande, help-COMMANDE-ARGUMENT
# pour un argument, help-any-ARGUMENT pour un argument que plusieurs commandes ont, help-COMMANDE-after pour ce qui suit.

# Les mots de l’aide elle-même.

help-word-usage = Utilisation :
help-word-commands = Commandes
help-word-command = COMMANDE
help-word-arguments = Arguments
help-word-options = Options
help-word-default = [par défaut : { $values }]
help-word-variable = [variable : { $values }]
help-word-possible = [valeurs possibles : { $values }]
help-word-help = Afficher l’aide
help-word-help-more = Afficher l’aide (plus complète avec « --help »)
help-word-help-less = Afficher l’aide (résumée avec « -h »)
help-word-help-command = Afficher cette aide, ou celle de la commande donnée
help-word-help-of = La commande dont l’aide est demandée
help-word-version = Afficher la version

help-heading-the-other-end = L’autre bout
help-heading-the-answer = La réponse

help-value-address = ADRESSE
help-value-code = CODE
help-value-command = COMMANDE
help-value-file = FICHIER
help-value-host = HÔTE
help-value-implementation = IMPLÉMENTATION
help-value-interface = INTERFACE
help-value-key = CLÉ
help-value-lab = LABO
help-value-labs = LABOS
help-value-lang = LANGUE
help-value-level = NIVEAU
help-value-name = NOM
help-value-option = OPTION
help-value-place = LIEU
help-value-program = PROGRAMME
help-value-protocol = PROTOCOLE
help-value-direction = SENS
help-value-rate = DÉBIT
help-value-scenario = SCÉNARIO
help-value-time = DURÉE

# Ce qui ne va pas dans la ligne de commande.

help-error = erreur : { $what }
help-error-twice = l’argument « { $argument } » ne peut être donné qu’une fois
help-error-conflict = l’argument « { $argument } » ne peut pas être donné avec { $others }
help-error-conflicts = l’argument « { $argument } » ne peut pas être donné avec d’autres qui l’ont été
help-error-no-value = « { $argument } » demande une valeur, et aucune n’est donnée
help-error-value = « { $value } » n’est pas une valeur possible de « { $argument } »
help-error-value-because = valeur « { $value } » refusée pour « { $argument } » : { $because }
help-error-command = il n’y a pas de commande « { $command } »
help-error-missing = il manque ces arguments obligatoires :
help-error-missing-command = « { $command } » demande une commande, et aucune n’est donnée
help-error-equals = la valeur de « { $argument } » doit suivre un signe égal
help-error-too-many = « { $value } » est de trop pour « { $argument } »
help-error-too-few = « { $argument } » n’a pas le nombre de valeurs qu’il lui faut
help-error-unknown = l’argument « { $argument } » est inconnu ici
help-error-utf8 = un argument n’est pas de l’UTF-8 valable
help-error-similar = proche de ce qui existe : { $similar }
help-error-as-value = pour donner « { $argument } » comme valeur, écrire « -- { $argument } »
help-error-usage = Utilisation : { $usage }
help-error-more = Pour en savoir plus, essayer « --help ».

# wirespeed

help-wirespeed = Trouve pourquoi un tunnel WireGuard est lent, et le répare, preuve à l’appui et annulation comprise
help-after =
    Exemples :
      wirespeed doctor wg0 --far ssh://root@nas       ce qui ne va pas, le pire d’abord (ne change rien)
      wirespeed test wg0 --far ssh://root@nas         le chemin nu contre le tunnel, dans les deux sens
      wirespeed tune wg0 --far ssh://root@nas --plan  ce qui serait fait, sous forme de script shell
      wirespeed tune wg0 --far ssh://root@nas         le faire, un pas prouvé après l’autre, annulable
      wirespeed explain mtu-exceeds-path              ce que dit un constat, et quoi faire à la main
      wirespeed lab up mtu-exceeds-path               un chemin d’exercice pour essayer tout cela

    Codes de sortie :
      0 sain ou fait, 1 constats, 2 mauvaise utilisation, 3 rien n’a pu être mesuré, 4 changement refusé
      ou annulé, 130 arrêté sur demande
help-lang = Langue de ce que lisent les personnes. Sinon celle que demandent LANGUAGE, LC_ALL, LC_MESSAGES ou LANG ; avec --json, l’anglais
help-quiet = N’afficher que ce qu’une option demande par son nom (--json, --plan), et les erreurs : le code de sortie est la réponse

# Les arguments que plusieurs commandes ont.

help-any-interface = L’interface WireGuard ; peut être omise s’il n’y en a qu’une
help-any-far =
    Où est l’autre bout du tunnel : `ssh://[utilisateur@]hôte[:port]`, `netns:NOM`, `here`, ou `iperf3://hôte[:port]` quand il n’y a là qu’un serveur iperf3.

    Par ssh, le même programme doit y être installé ; il ne faut ni démon, ni port ouvert, ni nouvelle relation de confiance. Sans cette option, wirespeed dit ce qu’un seul côté peut savoir, et ce qu’il n’a pas pu savoir.
help-any-far-program = Le programme wirespeed à l’autre bout : un nom de son PATH, ou un chemin
help-any-ssh-option = Une option de plus pour ssh, comme `-i` ou `FICHIER_DE_CLÉ` ; répétable
help-any-peer = Clé publique du pair à examiner, quand l’interface en a plusieurs
help-any-bare-address = Adresse de l’autre bout hors du tunnel ; par défaut l’adresse « endpoint » du pair
help-any-tunnel-address = Adresse de l’autre bout dans le tunnel ; par défaut trouvée d’après les adresses autorisées (AllowedIPs)
help-any-json = Écrire un seul objet JSON au lieu de texte ; rien d’autre ne va sur la sortie standard
help-any-html = Écrire aussi un rapport à regarder dans un navigateur : un fichier HTML avec des graphiques, qui ne charge rien depuis le réseau
help-any-verbose = Tous les chiffres derrière la réponse
help-any-expect = Ce que la ligne devrait donner : 300mbit, 1.5gbit
help-any-name = Nom du labo : de 1 à 8 lettres minuscules et chiffres ; au hasard s’il n’est pas donné

# doctor

help-doctor =
    Trouver pourquoi le tunnel est lent : observer, sonder, charger, et dire ce qui ne va pas, le pire d’abord. Ne change rien.

    Chaque constat montre le compteur, le fichier ou la sonde sur lesquels il repose. Ce qui n’a pas pu être vérifié est indiqué avec la raison, de même que ce que l’on essaie souvent et qui n’aiderait pas ici.
help-doctor-quick = Moins de 45 secondes sur un tunnel sain, 65 avec un aller-retour de 80 ms : des échantillons plus courts, donc des intervalles plus larges
help-doctor-passive = N’envoyer aucune charge : observer ce qui passe déjà dans le tunnel, et dire ce que cela apprend et n’apprend pas
help-doctor-watch-for = Combien de temps observer : 60s, 5m, ou un nombre de secondes ; une heure au plus
help-doctor-sweep = Chercher aussi le plus haut débit qui reste stable, et montrer la table des débits essayés
help-doctor-hop = Une machine sur le chemin de l’autre bout (un concentrateur, une passerelle), dans l’ordre où le trafic les traverse ; répétable. Chaque saut est mesuré seul, hors de son tunnel et à travers lui, puis tous ensemble
help-doctor-record = Écrire tout ce qui a été mesuré dans un fichier, pour --from
help-doctor-from = Juger un enregistrement au lieu de mesurer
help-doctor-after =
    Exemples :
      wirespeed doctor wg0 --far ssh://root@nas
      wirespeed doctor wg0 --far ssh://root@nas --quick
      wirespeed doctor wg0 --far ssh://root@nas --expect 300mbit
      wirespeed doctor wg0 --far iperf3://nas.example.org      quand wirespeed ne peut y tourner
      wirespeed doctor wg0                                     ce que ce côté seul peut savoir
      wirespeed doctor wg0 --passive --for 60s                 sans aucune charge de sa part
      wirespeed doctor wg0 --hop ssh://hub --far ssh://nas     saut par saut, et lequel est le pire
      wirespeed doctor wg0 --far ssh://root@nas --record slow.json
      wirespeed doctor --from slow.json                        juger un enregistrement, où que ce soit

# test

help-test =
    Comparer le tunnel au chemin nu : dans les deux sens, avec un flux et avec plusieurs, en paires entrelacées.

    Chaque comparaison est une suite de paires – chemin, tunnel, chemin, tunnel – et son résultat le rapport des deux avec un intervalle à 95 %. Neuf dixièmes du chemin ou plus, c’est sain. Rien n’est changé sur aucune machine.
help-test-quick = Un premier aperçu en moins de 30 secondes : une connexion et des échantillons courts, donc un intervalle plus large
help-test-streams = Connexions parallèles ; une comparaison pour chaque nombre [par défaut : 1,10 ; avec --quick 1]
help-test-connections = Plutôt de nombreux échanges courts, autant de connexions en même temps : se connecter, demander, recevoir la réponse, fermer. Avec `--streams`, en plus des comparaisons de charges de masse
help-test-protocol = Transport de la charge
help-test-rate = Débit de la charge sur UDP, tous flux confondus : 50mbit, 1.5gbit. Avec --protocol udp seulement
help-test-direction = Dans quel sens envoyer : upload (envoi) part d’ici
help-test-against = Comparer à un enregistrement précédent (`--output`, ou la sortie de `--json`)
help-test-output = Écrire aussi l’enregistrement dans un fichier
help-test-after =
    Exemples :
      wirespeed test wg0 --far ssh://root@nas
      wirespeed test wg0 --far ssh://root@nas --quick
      wirespeed test wg0 --far ssh://root@nas --streams 1 --direction upload --output today.json
      wirespeed test wg0 --far ssh://root@nas --against yesterday.json
      wirespeed test wg0 --far ssh://root@nas --connections 1000
      wirespeed test wg0 --far iperf3://nas.example.org

# tune

help-tune =
    Réparer le tunnel : essayer les remèdes du docteur un à un, garder ceux qui ont fait leurs preuves, et pouvoir tout remettre en place.

    Chaque remède est une expérience : comme avant, changé, comme avant, changé. Il n’est gardé que si l’intervalle à 95 % du gain exclut zéro et que ni la latence en charge, ni les rejets, ni le temps processeur n’ont empiré. Les anciennes valeurs sont sur le disque avant tout changement ; un gardien les remet en place si personne ne confirme à temps, si le tunnel meurt ou si ce programme est tué.
help-tune-plan = Écrire ce qui serait fait, un script shell par machine, et ne rien changer
help-tune-only = Ne remédier qu’à ce constat ; répétable
help-tune-confirm-within = Tout remettre en place si `wirespeed tune confirm` ne vient pas dans ce délai : 90s, 1h, ou un nombre de secondes [par défaut : 10m]
help-tune-yes = Confirmer aussitôt ce qui a fait ses preuves
help-tune-budget = Ne commencer aucune expérience qui finirait après ce temps : 90s, 1h, ou un nombre de secondes
help-tune-quick = Des échantillons plus courts, ici et dans les diagnostics avant et entre les expériences : des intervalles plus larges, donc moins de choses prouvées
help-tune-from = Commencer par un enregistrement de `wirespeed doctor --record` de ce tunnel, vieux de 15 minutes au plus, au lieu d’un diagnostic
help-tune-output = Écrire aussi l’objet JSON dans un fichier
help-tune-confirm = Garder ce qui a fait ses preuves ; `undo` peut encore le remettre en place
help-tune-undo = Remettre en place tout ce qu’un tune a changé, confirmé ou non
help-tune-status = Ce qui est changé en ce moment, et jusqu’à quand
help-tune-after =
    Exemples :
      wirespeed tune wg0 --far ssh://root@nas --plan     le plan, en script shell ; ne change rien
      wirespeed tune wg0 --far ssh://root@nas            le faire
      wirespeed tune confirm --far ssh://root@nas        garder pour de bon ce qui a été gardé
      wirespeed tune status --far ssh://root@nas
      wirespeed tune undo --far ssh://root@nas           tout remettre en place

# explain

help-explain = La page d’une cause, ou la liste de toutes
help-explain-code = Un code tel que `wirespeed doctor` l’écrit ; sans lui, tous sont indiqués
help-explain-after =
    Exemple :
      wirespeed explain mtu-exceeds-path

# lab

help-lab = Des chemins d’exercice dans des espaces de noms réseau : topologies, défauts, et le constat que chacun doit donner
help-lab-after =
    Exemples :
      wirespeed lab list
      wirespeed lab up mtu-exceeds-path
      wirespeed lab exec client -- ping -c 3 10.9.0.2
      wirespeed lab down
help-lab-up = Construire un chemin : espaces de noms, câbles, chemin, tunnel, défaut
help-lab-up-scenario = Nom d’un scénario (voir `lab list`) ou chemin d’un fichier TOML
help-lab-up-tunnel = Qui porte le tunnel au lieu de ce que dit le scénario : `kernel`, `wirespeed` (le programme `wirespeed-device`, à côté de celui-ci ou dans PATH), `wireguard-go`, ou le chemin d’un programme qui parle l’interface de WireGuard en espace utilisateur
help-lab-up-json = Écrire un seul objet JSON
help-lab-down = Démonter des labos ; le seul, s’il n’est pas nommé
help-lab-down-labs = Noms de labos
help-lab-down-all = Tous les labos de cette machine
help-lab-list = Les scénarios du programme, et les labos qu’il y a
help-lab-list-json = Écrire un seul objet JSON
help-lab-status = Comment va un labo : hôtes, adresses, processus, et ce qui n’est pas comme il devrait
help-lab-status-lab = Nom du labo ; le seul, s’il n’est pas donné
help-lab-status-json = Écrire un seul objet JSON
help-lab-exec = Lancer une commande sur un hôte d’un labo
help-lab-exec-lab = Nom du labo ; le seul, s’il n’est pas donné
help-lab-exec-host = L’hôte : client, server, source, gw1, gw2, sink, hub, road ou road2
help-lab-exec-command = La commande et ses arguments, après `--`

# demo

help-demo = Montrer un tunnel lent dont on trouve la cause, que l’on répare preuve à l’appui et que l’on remet en place : dans des espaces de noms réseau de cette machine, en moins de cinq minutes
help-demo-tunnel = Qui porte le tunnel au lieu de wireguard-go : comme `wirespeed lab up --tunnel`

# wirespeed-device, et pour quoi il refuse une valeur.

help-wirespeed-device =
    Une interface WireGuard en espace utilisateur

    Crée une interface WireGuard et en porte le trafic en espace utilisateur. Elle se configure avec wg, ou se lance par wg-quick avec WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device. La commande rend la main dès que l’interface est là et continue en arrière-plan ; supprimer l’interface l’arrête. Comme wg-quick ne passe aucune option, chacune a une variable d’environnement.
help-wirespeed-device-after =
    Exemples :
      WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg0
      wirespeed-device wg0
      wirespeed-device --statistics wg0
      systemctl enable --now wirespeed-device@wg0
help-wirespeed-device-interface = Nom de l’interface à créer
help-wirespeed-device-foreground = Rester au premier plan (aussi : `WG_PROCESS_FOREGROUND=1`)
help-wirespeed-device-engine = Qui fait quelle étape sur quel cœur. « inline » : chaque thread de travail porte un paquet de bout en bout ; « pipeline » : ceux qui lisent, chiffrent et écrivent se passent les paquets
help-wirespeed-device-workers = Combien de threads de travail se partagent le trafic [par défaut : au choix de l’agencement]
help-wirespeed-device-pin = Attacher chaque thread de travail à un cœur à lui
help-wirespeed-device-spread = Laisser chaque thread de travail envoyer à un pair depuis son propre port ; le pair le voit passer de l’un à l’autre
help-wirespeed-device-no-offload = Se passer de ces déchargements, séparés par des virgules
help-wirespeed-device-force-offload = Employer ceux-ci (udp-gso, udp-gro) bien que la version du noyau soit connue pour les casser
help-wirespeed-device-log-level = Ce qui est journalisé [aussi : `LOG_LEVEL` ; par défaut : info]
help-wirespeed-device-no-sandbox = Garder tous les privilèges après le départ (pour chercher un défaut)
help-wirespeed-device-statistics = Écrire ce que compte l’interface de ce nom, en JSON, et finir
help-wirespeed-device-name-length = un nom a de 1 à { $most } octets
help-wirespeed-device-name-folder = ce nom est celui d’un dossier
help-wirespeed-device-name-letter = un nom n’a pas de { $letter }
help-wirespeed-device-not-workers = un nombre de 1 à 256
help-wirespeed-device-not-by-version = udp-gso ou udp-gro : aucune version du noyau ne parle contre d’autres
help-wirespeed-device-not-offload = l’un de { $offloads }
help-wirespeed-device-none-there = aucun wirespeed-device ne porte { $interface } : { $path } n’existe pas
help-wirespeed-device-one-left-behind = aucun wirespeed-device ne porte { $interface } : { $path } est resté d’un démon tué
help-wirespeed-device-no-answer = le wirespeed-device de { $interface } ne répond pas par { $path } en { $limit } s
help-wirespeed-device-not-asked = le wirespeed-device de { $interface } n’a pas pu être interrogé par { $path } : { $error }
