cloud-limit-title = The cloud provider's limit is reached
cloud-limit-because = The provider held back or dropped { $count ->
    [one] { $count } packet
   *[other] { $count } packets
 } of { $interface } ({ $share } of what it carried) because the instance's allowance of { $allowance ->
    [bw_in] incoming bandwidth
    [bw_out] outgoing bandwidth
    [pps] packets per second
   *[conntrack] tracked connections
 } was used up.
cloud-limit-line-exceeded = packets of the card, and { $statistic }, { $when }
cloud-limit-line-machine = machine (/sys/class/dmi/id)
cloud-limit-remedy-packets = Fewer and larger packets: jumbo frames where the whole road has them (inside one VPC), and the tunnel's MTU raised to match
cloud-limit-risk-packets = larger than some hop of the road means loss: wirespeed doctor measures the road's MTU
cloud-limit-remedy-untracked = Security group rules that need no tracking (the tunnel's UDP port allowed from 0.0.0.0/0 and ::/0, and every port to them in the other direction), and shorter idle timeouts of tracked connections
cloud-limit-risk-untracked = the group filters that port no longer by connection or by address
cloud-limit-remedy-instance = A larger instance, or one of a kind with more network; or the traffic spread over several instances
cloud-limit-risk-instance = cost; an outage while it is changed
cloud-limit-refused = buffers, rings, budgets and other sysctls on { $host }
cloud-limit-refused-why = the limit is kept outside of this machine, by the provider
