crypto-slow-title = Une machine virtuelle sans les instructions de chiffrement de son hôte
crypto-slow-because = { $place } est une machine virtuelle ({ $hypervisor }) dont le processeur ({ $model }) n’a pas { $flag } : chiffrer prend deux à quatre fois plus de temps, et le processeur retient le tunnel.
crypto-slow-unknown-model = inconnu
crypto-slow-line-hypervisor = hyperviseur
crypto-slow-line-model = modèle du processeur
crypto-slow-line-flag = indicateur { $flag } dans /proc/cpuinfo
crypto-slow-present = présent sur les hôtes d’aujourd’hui
crypto-slow-absent = absent
crypto-slow-remedy = Le modèle de processeur de l’hôte lui-même pour cette machine
crypto-slow-persistence = sur l’hôte : libvirt `<cpu mode='host-passthrough'/>`, Proxmox `qm set ID --cpu host`, QEMU `-cpu host` ; puis arrêter et démarrer la machine
crypto-slow-risk = migration à chaud seulement entre des hôtes du même modèle ; `host-model` de libvirt ou `x86-64-v3` de Proxmox sont la voie moyenne
crypto-slow-undo = l’ancien modèle, puis arrêter et démarrer la machine
