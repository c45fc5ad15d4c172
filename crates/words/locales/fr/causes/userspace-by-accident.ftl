userspace-by-accident-title = Un programme porte le tunnel alors que le noyau le pourrait
