conntrack-invalid-title = Le suivi de connexions déclare invalides des paquets des connexions du tunnel
