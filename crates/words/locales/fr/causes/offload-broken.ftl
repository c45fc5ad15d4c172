offload-broken-title = La segmentation à la sortie abîme des paquets
