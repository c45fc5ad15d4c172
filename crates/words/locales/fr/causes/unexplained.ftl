unexplained-title = Le tunnel est lent, et aucune des causes connues ne se montre
unexplained-because = De { $from } vers { $to }, le tunnel perd { $lost } de ce que transporte le chemin nu, et aucune des causes connues ne se montre.
unexplained-because-stalls = Les charges de { $from } vers { $to } se bloquent dans le tunnel, et aucune des causes connues ne se montre.
unexplained-line-again = segments retransmis dans le tunnel, { $direction }
unexplained-line-no-sign = aucun signe de { $codes }
unexplained-unsteady = { $direction } : le tunnel transporte entre { $low } et { $high } du chemin nu, ce qui est trop instable pour le dire lent ou non ; mesurer pendant que les machines n’ont rien d’autre à faire, ou avec `wirespeed test`, dont les charges sont plus longues
unexplained-unsteady-long = { $direction } : le tunnel transporte entre { $low } et { $high } du chemin nu, ce qui est trop instable pour le dire lent ou non : une charge de { $load } ne dure que { $trips } allers-retours de ce chemin ({ $rtt }), et le déroulement de son démarrage lent décide de ce qu’elle transporte, hors du tunnel aussi ; mesurer avec `wirespeed test`, dont les charges sont plus longues
unexplained-unsteady-one = { $direction } : une connexion transporte par le tunnel entre { $low } et { $high } du chemin nu, ce qui est trop instable pour le dire lent ou non ; { $streams } connexions ensemble transportent { $together }, là où une seule en transporte { $bare } au dehors : le tunnel laisse donc passer autant. Les charges de `wirespeed test` sont plus longues
