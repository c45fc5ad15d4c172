conntrack-full-title = Plus de place pour de nouvelles connexions dans le suivi de connexions
