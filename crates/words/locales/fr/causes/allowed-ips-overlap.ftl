allowed-ips-overlap-title = Les adresses d’un pair appartiennent à un autre pair
allowed-ips-overlap-because-taken = Un préfixe n’appartient qu’à un seul pair, et le pair { $peer } de { $place } est resté sans le sien : les paquets qui lui sont destinés partent vers le pair { $holder }.
allowed-ips-overlap-because-one = Un préfixe n’appartient qu’à un seul pair, et le pair { $peer } de { $place } est resté sans le sien : rien ne peut lui être envoyé, et ce qu’il envoie est jeté.
allowed-ips-overlap-because-aside = Les paquets pour { $address }, l’adresse de { $host } dans le tunnel, partent vers le pair { $holder } de { $place }. Le pair { $peer } a d’autres préfixes, et ce qui les concerne passe : ce n’est une erreur que s’il faut pouvoir joindre { $address }.
allowed-ips-overlap-because-several = Un préfixe n’appartient qu’à un seul pair, et { $count } pairs de { $place } n’en ont aucun : rien ne peut leur être envoyé, et ce qu’ils envoient est jeté ({ $peers }).
allowed-ips-overlap-line-holder = pair qui détient { $address }, l’adresse de { $host }
allowed-ips-overlap-line-prefixes = « allowed IPs » du pair { $peer }
allowed-ips-overlap-none = aucune
allowed-ips-overlap-line-frame-errors = rx_frame_errors pendant les sondes : paquets venus d’adresses hors des « allowed IPs »
allowed-ips-overlap-line-dropped = jetés par { $program } pendant les sondes : paquets venus d’adresses hors des « allowed IPs »
allowed-ips-overlap-remedy-one = Donner au pair { $peer } son propre préfixe, et à chaque autre pair le sien
allowed-ips-overlap-remedy-several = Donner à chacun de ces pairs son propre préfixe, et à chaque autre pair le sien
allowed-ips-overlap-persistence = `AllowedIPs =` sous chaque [Peer] du fichier de wg-quick, aucun préfixe deux fois
allowed-ips-overlap-risk = retire le préfixe au pair qui le détient à présent
allowed-ips-overlap-unknown-peers = les pairs de { $host } ne sont pas connus
allowed-ips-overlap-unknown-peers-because = les pairs de { $place } ne sont pas connus : { $because }
allowed-ips-overlap-unknown-meant = on ignore s’il manque quelque chose au pair { $peer } de { $place } : { $address } appartient au pair { $holder }, mais il a d’autres préfixes, et rien n’a été envoyé qui permette d’en juger
allowed-ips-overlap-unknown-address = l’adresse de { $host } dans le tunnel n’est pas connue, si bien que seuls les pairs sans aucun préfixe peuvent être signalés
