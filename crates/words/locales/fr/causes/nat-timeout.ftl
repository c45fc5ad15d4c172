nat-timeout-title = Le tunnel s’endort derrière un NAT
