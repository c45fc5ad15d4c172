napi-convergence-title = Un seul cœur reçoit pour tous les pairs
