# Ce que disent les constats de plusieurs causes.

doctor-watched = observé
doctor-way = de { $from } vers { $to }
doctor-on = { $what } sur { $host }
