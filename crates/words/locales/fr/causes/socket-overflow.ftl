socket-overflow-title = Le socket UDP du tunnel déborde
