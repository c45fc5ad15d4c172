mtu-exceeds-path-title = La MTU du tunnel dépasse ce que le chemin transporte
