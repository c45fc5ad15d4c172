# The kernel and wirespeed-device renew their keys after two minutes of traffic, whoever began.
# executables: wirespeed-device/interop
export WIRESPEED_DEVICE=/vm/bin/wirespeed-device
interop --test-threads 1 --ignored kernel
