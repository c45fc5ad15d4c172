napi-threaded-stall-title = Le tunnel du noyau ne reçoit plus rien d’un pair
