# Ce que le programme dit de lui-même.

explain-list = Les causes que wirespeed connaît :
explain-list-more = wirespeed explain CODE en dit plus sur l’une d’elles.
explain-no-such-code = il n’y a pas de cause dont le code soit { $code }
explain-no-such-code-todo = wirespeed explain donne la liste de celles qu’il y a
