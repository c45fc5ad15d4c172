# What the doctor says of a machine with two NUMA nodes and a card on the second – its interrupts there, then on the first –
# and of one where irqbalance runs. The two cards are joined.
# executables: wirespeed-cli/kernel_doctor
# options: --seconds 1800 --cpus 4 --memory 3072
# qemu: -object memory-backend-ram,id=memory0,size=1536M -numa node,nodeid=0,cpus=0-1,memdev=memory0
# qemu: -object memory-backend-ram,id=memory1,size=1536M -numa node,nodeid=1,cpus=2-3,memdev=memory1
# qemu: -device pxb-pcie,id=second,bus_nr=64,numa_node=1,bus=pcie.0 -device pcie-root-port,id=root1,bus=second,chassis=1
# qemu: -netdev hubport,id=a,hubid=0 -netdev hubport,id=b,hubid=0
# qemu: -device virtio-net-pci,netdev=a,bus=root1 -device virtio-net-pci,netdev=b,bus=pcie.0
modprobe virtio_net
export WIRESPEED=/vm/bin/wirespeed
kernel_doctor --test-threads 1 --nocapture numa
