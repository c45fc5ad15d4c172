# What wirespeed reads of the kernel's WireGuard by netlink is what `wg` reads.
# executables: wirespeed-facts/kernel_tunnel
kernel_tunnel
