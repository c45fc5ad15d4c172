userspace-by-accident-title = A program carries the tunnel although the kernel could
