backlog-overflow-title = La file de réception (backlog) d’un cœur déborde
