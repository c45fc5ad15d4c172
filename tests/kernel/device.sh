# The kernel's WireGuard and wirespeed-device at the two ends of one tunnel: traffic, new keys, roaming, DSCP and ECN.
# executables: wirespeed-device/interop
# options: --seconds 900
export WIRESPEED_DEVICE=/vm/bin/wirespeed-device
interop --test-threads 1 kernel
