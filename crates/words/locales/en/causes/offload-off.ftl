offload-off-title = Offloads are off, and a processor is the limit
