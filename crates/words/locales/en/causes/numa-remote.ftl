numa-remote-title = The card's packets are received on another NUMA node
