# Ce que font les défauts de crates/doctor/data, et ce qui aide.

kernel-fault-harm-threaded-napi-stall = en charge, un pair peut cesser définitivement de recevoir tandis que les autres continuent ; ces noyaux activent NAPI en threads par défaut
kernel-fault-remedy-threaded-napi-stall = 5.15.201, 6.1.164, 6.6.127, 6.12.74 ou plus récent reviennent à l’ancien réglage par défaut ; d’ici là, `threaded` = 0
kernel-fault-harm-tun-gso-einval = le noyau refuse un train de segments qui se termine par un segment plus court (EINVAL), si bien que TCP dans le tunnel retombe à une fenêtre d’un seul segment
kernel-fault-remedy-tun-gso-einval = une version plus récente de la série : 6.1.107, 6.6.46 et 6.10.5 ont la correction
kernel-fault-harm-udp-gso-headers = les trains de datagrammes UDP d’une même longueur partent avec de faux en-têtes et de fausses sommes de contrôle, et se perdent sur certaines cartes
kernel-fault-remedy-udp-gso-headers = Linux 7.1.5 ou plus récent ; d’ici là, `ethtool -K CARD tx-udp-segmentation off`

driver-fault-harm-vxlan-udp-gro = les datagrammes qu’un tunnel en espace utilisateur a regroupés sont rejetés en traversant le lien vxlan
driver-fault-harm-virtio-udp-gso-host = l’invité laisse des trains de datagrammes UDP à un hôte dont le noyau peut mal les découper, quel que soit le noyau de l’invité
