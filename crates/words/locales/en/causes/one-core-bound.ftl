one-core-bound-title = One core is full while the others have room
