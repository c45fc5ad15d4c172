crypto-slow-title = Une machine virtuelle sans les instructions de chiffrement de son hôte
