userspace-by-accident-title = A program carries the tunnel although the kernel could
userspace-by-accident-because = { $program } carries { $place } and the processor holds it back ({ $direction }), while the kernel's own WireGuard is { $state ->
    [built-in] built in
    [loaded] loaded
   *[installed] installed, not loaded
 }.
userspace-by-accident-state = { $state ->
    [built-in] built in
    [loaded] loaded
   *[installed] installed, not loaded
 }
userspace-by-accident-line-kind = kind of the link, and what carries it
userspace-by-accident-line-kernel = the kernel's own WireGuard (/sys/module, modules.dep)
userspace-by-accident-line-process = processor time of { $process }, { $direction }
userspace-by-accident-remedy = Let the kernel carry the tunnel: wg-quick takes it wherever it can
userspace-by-accident-persistence = `wireguard` in /etc/modules-load.d/wireguard.conf; whatever starts the daemon by itself (a unit, a container, WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD) must go
userspace-by-accident-risk = the tunnel is down for some seconds: not from a session through this tunnel (systemd-run, or the console); a daemon that is part of a product (Tailscale, NetBird …) is not to be replaced
userspace-by-accident-unknown = whether the kernel of { $host } could carry the tunnel is not known: { $why }
# Comments behind commands.
userspace-by-accident-keys = keys: keep it to yourself
userspace-by-accident-kind-now = now of kind wireguard
userspace-by-accident-start-daemon = then start the daemon as it was started before
userspace-by-accident-start-named = then start { $daemon } as it was started before
