cpu-saturated-title = A machine has no processor time left
