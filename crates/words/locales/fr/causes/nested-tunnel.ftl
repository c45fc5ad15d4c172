nested-tunnel-title = Le tunnel passe dans un autre tunnel
