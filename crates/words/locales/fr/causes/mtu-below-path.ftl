mtu-below-path-title = La MTU du tunnel est plus petite que nécessaire
