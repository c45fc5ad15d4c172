old-kernel-title = The kernel is known to harm such a tunnel
