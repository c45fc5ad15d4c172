bufferbloat-title = Une file d’attente profonde se remplit quand le tunnel est en charge
