allowed-ips-overlap-title = Les adresses d’un pair appartiennent à un autre pair
