crypto-slow-title = A virtual machine without its host's instructions for encrypting
crypto-slow-because = { $place } is a virtual machine ({ $hypervisor }) whose processor ({ $model }) lacks { $flag }, so encrypting takes two to four times as long, and the processor holds the tunnel back.
crypto-slow-unknown-model = unknown
crypto-slow-line-hypervisor = hypervisor
crypto-slow-line-model = model of the processor
crypto-slow-line-flag = flag { $flag } in /proc/cpuinfo
crypto-slow-present = present on the hosts of today
crypto-slow-absent = absent
crypto-slow-remedy = The host's own model of processor for this machine
crypto-slow-persistence = on the host: libvirt `<cpu mode='host-passthrough'/>`, Proxmox `qm set ID --cpu host`, QEMU `-cpu host`; then stop and start the machine
crypto-slow-risk = live migration only between hosts of the same model; libvirt's `host-model` or Proxmox's `x86-64-v3` are the middle way
crypto-slow-undo = the old model, and stop and start the machine
