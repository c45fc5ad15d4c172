napi-threaded-stall-title = The kernel's tunnel receives nothing any more from a peer
