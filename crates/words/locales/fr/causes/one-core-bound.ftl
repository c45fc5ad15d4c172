one-core-bound-title = Un cœur est plein alors que les autres ont de la place
