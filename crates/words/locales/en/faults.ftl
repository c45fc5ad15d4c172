# What the faults in crates/doctor/data do, and what helps. The key is the table, `harm` or `remedy`, and the row's id.

kernel-fault-harm-threaded-napi-stall = under load a peer may stop receiving for good, others go on; these kernels turn threaded NAPI on by default
kernel-fault-remedy-threaded-napi-stall = 5.15.201, 6.1.164, 6.6.127, 6.12.74 or later take the default back; until then `threaded` = 0
kernel-fault-harm-tun-gso-einval = the kernel refuses a train of segments that ends in a shorter one (EINVAL), so TCP through the tunnel falls back to a window of one segment
kernel-fault-remedy-tun-gso-einval = a later release of the series: 6.1.107, 6.6.46 and 6.10.5 have the fix
kernel-fault-harm-udp-gso-headers = trains of UDP datagrams of one length leave with wrong headers and checksums, and are lost on some cards
kernel-fault-remedy-udp-gso-headers = Linux 7.1.5 or later; until then `ethtool -K CARD tx-udp-segmentation off`

driver-fault-harm-vxlan-udp-gro = datagrams that a userspace tunnel coalesced are dropped on their way through the vxlan link
driver-fault-harm-virtio-udp-gso-host = the guest leaves trains of UDP datagrams to a host whose kernel may cut them wrongly, whatever the guest's own kernel is
