unexplained-title = The tunnel is slow, and none of the known causes shows
unexplained-because = From { $from } to { $to } the tunnel loses { $lost } of what the bare path carries, and none of the known causes shows.
unexplained-because-stalls = Loads from { $from } to { $to } stall inside the tunnel, and none of the known causes shows.
unexplained-line-again = segments sent again through the tunnel, { $direction }
unexplained-line-no-sign = no sign of { $codes }
unexplained-unsteady = { $direction }: the tunnel carries between { $low } and { $high } of bare, too unsteady to call it slow or not; measure while the machines have nothing else to do, or with `wirespeed test`, whose loads are longer
unexplained-unsteady-long = { $direction }: the tunnel carries between { $low } and { $high } of bare, too unsteady to call it slow or not: a load of { $load } is over after { $trips } round trips of this road ({ $rtt }), and how its slow start goes decides what it carries, outside as well; measure with `wirespeed test`, whose loads are longer
unexplained-unsteady-one = { $direction }: one connection carries between { $low } and { $high } of bare through the tunnel, too unsteady to call it slow or not; { $streams } connections together carry { $together }, where one outside carries { $bare }, so the tunnel lets that much through. `wirespeed test` has longer loads
