collapse-above-rate-title = Le tunnel transporte moins quand on lui demande plus
collapse-above-rate-because = Tenu à { $cap }, le tunnel transporte { $held } et varie de { $held_variation } ; sans plafond, il transporte { $free } et varie de { $free_variation } : au-delà de ce débit, quelque chose cède en route.
collapse-above-rate-line = débit utile selon le plafond posé par { $by }, { $direction }
collapse-above-rate-line-steady = débit utile selon le plafond posé par { $by }, stable, { $direction }
collapse-above-rate-line-retransmits = segments retransmis par seconde sans plafond, et tenu à { $cap }, { $direction }
collapse-above-rate-line-variation = variation du débit utile sans plafond, et tenu à { $cap }, { $direction }
# Suit le débit dans le titre d’un remède, jamais à la fin.
collapse-above-rate-remedy-remark = , le plus haut débit resté stable,
collapse-above-rate-risk = plafonne le débit de pointe du tunnel ; chercher de nouveau ce débit après toute autre réparation : dans un cas public, il est passé de 150 à 450 Mbit/s
collapse-above-rate-unknown = { $direction } : le débit utile oscille fortement, mais aucun plafond n’a été essayé (--sweep)
