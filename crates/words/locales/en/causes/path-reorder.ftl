path-reorder-title = The road changes the order of packets
