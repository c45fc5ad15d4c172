offload-broken-title = Segmentation on the way out breaks packets
