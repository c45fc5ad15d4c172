userspace-by-accident-title = Un programme porte le tunnel alors que le noyau le pourrait
userspace-by-accident-because = { $program } porte { $place } et le processeur le freine ({ $direction }), alors que le WireGuard du noyau est { $state ->
    [built-in] intégré
    [loaded] chargé
   *[installed] installé mais non chargé
 }.
userspace-by-accident-state = { $state ->
    [built-in] intégré
    [loaded] chargé
   *[installed] installé mais non chargé
 }
userspace-by-accident-line-kind = type du lien, et ce qui le porte
userspace-by-accident-line-kernel = le WireGuard du noyau (/sys/module, modules.dep)
userspace-by-accident-line-process = temps de processeur de { $process }, { $direction }
userspace-by-accident-remedy = Laisser le noyau porter le tunnel : wg-quick le prend partout où il le peut
userspace-by-accident-persistence = `wireguard` dans /etc/modules-load.d/wireguard.conf ; ce qui lance le démon de lui-même (une unité, un conteneur, WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD) doit disparaître
userspace-by-accident-risk = le tunnel est coupé quelques secondes : pas depuis une session qui passe par ce tunnel (systemd-run, ou la console) ; un démon qui fait partie d’un produit (Tailscale, NetBird…) ne se remplace pas ainsi
userspace-by-accident-unknown = on ignore si le noyau de { $host } pourrait porter le tunnel : { $why }
# Commentaires à la suite des commandes.
userspace-by-accident-keys = avec les clés : à garder pour soi
userspace-by-accident-kind-now = maintenant de type wireguard
userspace-by-accident-start-daemon = puis lancer le démon comme il l’était auparavant
userspace-by-accident-start-named = puis lancer { $daemon } comme il l’était auparavant
