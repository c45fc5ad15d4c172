# What the doctor says of the kernel's WireGuard, and of roads that only a full kernel can make.
# executables: wirespeed-cli/kernel_doctor
# options: --seconds 1800 --memory 3072
export WIRESPEED=/vm/bin/wirespeed
kernel_doctor --test-threads 1 --nocapture --skip numa --skip hub
