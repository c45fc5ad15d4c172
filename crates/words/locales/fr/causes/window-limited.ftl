window-limited-title = Une connexion attend sa fenêtre, non le chemin
window-limited-because = Une connexion atteint { $rate } parce que, { $share } du temps, elle attend { $window ->
    [receiver] la fenêtre du récepteur (tcpi_rwnd_limited)
   *[sender] son propre tampon d’émission (tcpi_sndbuf_limited)
 } : { $bytes } octets par aller-retour de { $rtt } ne donnent pas davantage. Plusieurs ensemble atteignent { $several }.
window-limited-because-watched = Une connexion du tunnel vers { $remote } attend, { $share } de son temps, { $window ->
    [receiver] la fenêtre du récepteur (tcpi_rwnd_limited)
   *[sender] son propre tampon d’émission (tcpi_sndbuf_limited)
 } : { $sysctl } est peut-être trop petit pour ce chemin, ou le programme trop lent.
window-limited-line-watched = part du temps actif pendant laquelle la connexion vers { $remote } a attendu { $window ->
    [receiver] la fenêtre du récepteur (tcpi_rwnd_limited)
   *[sender] son propre tampon d’émission (tcpi_sndbuf_limited)
 }
window-limited-line-watched-rate = son débit utile pendant l’observation
window-limited-line-waited = part du temps actif pendant laquelle l’émetteur a attendu { $window ->
    [receiver] la fenêtre du récepteur (tcpi_rwnd_limited)
   *[sender] son propre tampon d’émission (tcpi_sndbuf_limited)
 }, { $direction }
window-limited-line-under-way = octets en route par aller-retour de { $rtt }, { $direction }
window-limited-line-rates = débit utile TCP dans le tunnel : une connexion, et plusieurs, { $direction }
window-limited-line-largest = { $sysctl }, maximum
window-limited-remedy = Donner à une connexion de { $host } un tampon de { $mebibytes } Mio au plus
window-limited-risk = jusqu’à { $mebibytes } Mio de mémoire pour chaque connexion qui le remplit ; les programmes qui fixent eux-mêmes SO_RCVBUF ou SO_SNDBUF n’y gagnent rien
window-limited-unknown = { $direction } : on ignore ce que le TCP de l’émetteur a attendu
window-limited-unknown-several = si plusieurs connexions sont plus rapides qu’une seule
