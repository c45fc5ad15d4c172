# What the doctor says at a hub of the kernel's WireGuard while several peers send to it, without threaded NAPI and with it.
# executables: wirespeed-cli/kernel_doctor
# options: --seconds 1800 --cpus 4 --memory 3072
export WIRESPEED=/vm/bin/wirespeed
kernel_doctor --test-threads 1 --nocapture hub
