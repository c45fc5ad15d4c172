napi-convergence-title = One core receives for all peers
