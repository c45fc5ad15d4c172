irq-placement-title = Les interruptions de la carte réseau vont aux mauvais cœurs
