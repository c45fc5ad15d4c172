# What wirespeed-device tells of itself, and how to put it in another daemon's place.

device-line-dropped = dropped by { $program }, { $direction }: { $reason }
device-line-engine = engine and workers of { $program }
device-line-worker = processor time of its busiest worker ({ $worker }), { $direction }
device-line-offload = offload { $offload } of { $program }
device-line-received = packets received per system call of { $program }, { $direction }
device-line-sent = packets sent per system call of { $program }, { $direction }
device-remedy-replace = Last resort: { $device } instead of { $program }, which takes less processor time per byte
device-risk-replace = the tunnel is down for some seconds; all connections that leave by it wait or break; wg-quick prefers the kernel's WireGuard where there is one
device-remedy-workers = A worker of { $program } per core, each with a UDP port of its own (--workers { $cores } --spread)
device-risk-workers = spreads only towards peers that run wirespeed-device with --spread too, and needs a road that lets more than one port through; one connection stays on one core
device-risk-workers-unit = for a device that { $unit } started (another one stays as it is, and takes --workers and --spread where it is started); the interface goes and comes with its daemon, so addresses and routes come back only where something such as systemd-networkd sets them; spreads only towards peers that run { $program } with --spread too, and needs a road that lets more than one port through; one connection stays on one core
device-persistence = `Environment={ $variables }` under [Service] in `systemctl edit { $unit }`
