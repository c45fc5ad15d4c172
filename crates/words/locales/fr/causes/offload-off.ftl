offload-off-title = Des déchargements (offloads) sont coupés, et un processeur est la limite
