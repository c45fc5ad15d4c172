firewall-cost-title = Many firewall rules on each packet's way
