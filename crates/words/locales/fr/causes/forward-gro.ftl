forward-gro-title = Une passerelle remet les datagrammes un par un au tunnel
