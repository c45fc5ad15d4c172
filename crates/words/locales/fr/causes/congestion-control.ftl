congestion-control-title = Le contrôle de congestion de l’émetteur ralentit pour des pertes qui ne sont pas de la congestion
