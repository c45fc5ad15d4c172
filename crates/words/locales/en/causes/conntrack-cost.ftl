conntrack-cost-title = Connection tracking takes processor time that is missing
