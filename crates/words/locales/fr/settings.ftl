# Les réglages que l’on change : ce qu’est chacun, et comment conserver sa valeur au redémarrage.

settings-link-mtu = MTU de { $interface }
settings-link-mtu-persistence = `MTU = { $value }` sous [Interface] dans /etc/wireguard/{ $interface }.conf (wg-quick) ; là où un autre gère l’interface : `MTUBytes={ $value }` sous [Link] dans le fichier .network de systemd-networkd, ou `nmcli connection modify { $connection } wireguard.mtu { $value }` avec NetworkManager
settings-socket-receive-buffer = tampon de réception du socket de { $interface }
settings-socket-receive-buffer-persistence = `net.core.rmem_default = { $value }` et `net.core.rmem_max = { $value }` dans /etc/sysctl.d/90-wirespeed.conf : pour l’hôte entier, et le démon ne les prend qu’à son prochain démarrage ; ou un démon qui règle lui-même ses tampons
settings-route-congestion = contrôle de congestion des routes de { $interface }
settings-route-congestion-persistence = `PostUp = { $command }` dans /etc/wireguard/{ $interface }.conf (et la même chose avec `ip -6` pour IPv6)
settings-egress-shaper = limiteur de débit en sortie de { $interface }
settings-egress-shaper-persistence = `PostUp = { $command }` dans /etc/wireguard/{ $interface }.conf, ou [TokenBucketFilter] / [CAKE] dans le fichier .network de systemd-networkd là où il gère l’interface
settings-nothing-to-keep = rien à conserver
settings-receive-ring = anneau de réception (ring) de { $interface }
settings-receive-ring-persistence = `RxBufferSize={ $value }` sous [Link] dans un fichier .link de systemd qui désigne la carte réseau (/etc/systemd/network/10-{ $interface }.link ; systemd.link(5)), ou `ethtool -G` dans son script ifup
settings-interrupt-cores = cœurs de l’interruption { $number }
settings-interrupt-cores-persistence = `{ $command }` à chaque démarrage, le numéro étant retrouvé par son nom dans /proc/interrupts (les numéros changent) ; et là où irqbalance tourne, `IRQBALANCE_ARGS=--banirq={ $number }` dans /etc/default/irqbalance, sinon il la déplace de nouveau
settings-governor = gouverneur de fréquence du processeur
settings-governor-persistence = `GOVERNOR="{ $governor }"` dans /etc/default/cpufrequtils (paquet cpufrequtils), ou un profil de tuned ; le service de cpupower a `governor='{ $governor }'` dans /etc/default/cpupower
settings-threaded-napi = NAPI en threads de { $interface }
settings-threaded-napi-persistence = `PostUp = echo { $value } > /sys/class/net/%i/threaded` sous [Interface] dans /etc/wireguard/{ $interface }.conf (wg-quick)
settings-link-offload = { $feature } de { $interface }
settings-link-offload-persistence = une ligne `ethtool -K { $interface } { $feature } { $value }` exécutée quand l’interface monte : `post-up` dans /etc/network/interfaces, un script dans /etc/networkd-dispatcher/routable.d, ou `nmcli connection modify { $interface } ethtool.feature-{ $feature } { $value }` avec NetworkManager ; les fichiers .link de systemd connaissent les fonctions les plus courantes
settings-sysctl = sysctl { $name }
settings-sysctl-persistence = `{ $name } = { $value }` dans /etc/sysctl.d/90-wirespeed.conf, puis `sysctl --system`
