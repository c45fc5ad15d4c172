conntrack-cost-title = Le suivi de connexions prend du temps de processeur qui manque
