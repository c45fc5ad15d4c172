conntrack-full-title = No room for new connections in connection tracking
