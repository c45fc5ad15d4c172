path-slow-title = Le chemin lui-même est lent ; le tunnel n’y est pour rien
path-slow-because = Hors du tunnel, le chemin transporte { $bare } sur les { $expected } attendus, et le tunnel en transporte { $share }.
path-slow-line-bare = débit utile de TCP sur le chemin nu, face à ce qui était attendu, { $direction }
path-slow-refused = régler WireGuard, sa MTU, ses tampons ou ses sysctls
path-slow-refused-why = le tunnel transporte déjà ce que transporte le chemin : regarder du côté de la ligne, du fournisseur ou du saut intermédiaire
path-slow-unknown-bare = { $direction } : le chemin nu n’a pas été mesuré
