//! The shapes of a snapshot. Sizes in bytes, rates in bit/s, times in seconds unless a name says otherwise.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::{
    Connections, Counters, DeviceStatistics, Hardware, KernelWireGuard, Known, LinkDetail,
    TunnelFilter,
};

/// What to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The WireGuard interface in question; `None` = every one of this network namespace.
    pub interface: Option<String>,
    /// Public key of the peer in question, whose ways are looked up however many others there are.
    #[serde(default)]
    pub peer: Option<String>,
}

/// One machine (seen from one network namespace) at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// Seconds since the Unix epoch.
    pub taken_at: f64,
    /// Who and what this machine is.
    pub host: Host,
    /// The processor.
    pub cpu: Cpu,
    /// Every link of this network namespace.
    pub links: Vec<Link>,
    /// WireGuard devices of this network namespace, kernel and userspace.
    pub tunnels: Vec<Tunnel>,
    /// Names as in `sysctl(8)` (`net.core.rmem_max`) to the text of their file.
    pub sysctls: BTreeMap<String, Known<String>>,
    /// Routes to the endpoint of each peer and to its inner address, as the kernel would take them now; of more than 512
    /// those of the peer in question and of the peers that carried most.
    pub routes: Vec<EndpointRoute>,
    /// Is there a packet filter, and how many rules per hook (`nft --json list ruleset`).
    pub firewall: Known<Firewall>,
    /// Programs wirespeed calls, to their version line: `iperf3`, `wg`, `nft`, `tc`, `ethtool`.
    pub programs: BTreeMap<String, Known<String>>,
    /// The counters at this moment.
    pub counters: Counters,
    /// What the machine is made of: hypervisor, NUMA nodes, frequencies.
    #[serde(default)]
    pub hardware: Hardware,
    /// Could the kernel carry a WireGuard tunnel itself?
    #[serde(default)]
    pub kernel_wireguard: Known<KernelWireGuard>,
    /// The links the tunnels' outer packets take, in the order they pass them: the interface of the route to an
    /// endpoint, then those below it (parent of a VLAN, members of a bond). They have their [`Link::detail`].
    #[serde(default)]
    pub outer_links: Vec<String>,
    /// Live TCP connections of this machine's own through its tunnels, and sockets that listen.
    #[serde(default)]
    pub connections: Known<Connections>,
}

impl Facts {
    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// Who and what this machine is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// `uname -n`.
    pub name: String,
    /// `/proc/sys/kernel/random/boot_id`: equal boot ids are one kernel.
    pub boot_id: Known<String>,
    /// Inode of the network namespace.
    pub netns: Known<u64>,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`; distributions whose releases hide the release of kernel.org tell it here
    /// (`#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)`).
    #[serde(default)]
    pub kernel_build: String,
    /// `/proc/version_signature` (`Ubuntu 6.8.0-117.117-generic 6.8.12`); `None` where the kernel has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_signature: Option<String>,
    /// `uname -m`.
    pub architecture: String,
    /// `PRETTY_NAME` of `/etc/os-release`.
    pub system: Known<String>,
    /// Runs with effective user id 0 (or `CAP_NET_ADMIN`)?
    pub privileged: bool,
}

/// The processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// Model name as the kernel gives it.
    pub model: Known<String>,
    /// Online logical cores.
    pub online: usize,
    /// Flags of the first core.
    pub flags: Vec<String>,
    /// Scaling governor per core, where there is one.
    pub governor: Known<String>,
    /// Scaling driver per core (`intel_pstate`, `acpi-cpufreq`, …): what a governor's name means is up to it.
    #[serde(default)]
    pub frequency_driver: Known<String>,
}

/// One network link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// `IFLA_INFO_KIND` (`wireguard`, `tun`, `veth`, …); `None` for plain devices.
    pub kind: Option<String>,
    /// `IFF_UP`.
    pub up: bool,
    /// MTU in bytes.
    pub mtu: u32,
    /// Link speed in bit/s where the driver tells.
    pub speed: Known<u64>,
    /// Driver where the kernel tells.
    pub driver: Known<String>,
    /// Addresses with prefix lengths, `10.0.0.1/24`.
    pub addresses: Vec<String>,
    /// Kind of the root queueing discipline (`noqueue`, `tbf`, `fq_codel`, …).
    pub qdisc: Known<String>,
    /// Offload features by their ethtool name (`tx-udp-segmentation`, `rx-gro`, …) to on/off.
    pub offloads: Known<BTreeMap<String, bool>>,
    /// Transmit queue length in packets.
    pub tx_queue_len: Option<u32>,
    /// The link below it (`IFLA_LINK`): the card of a VLAN or of an outer tunnel. `None` when there is none, or it
    /// is in another network namespace; the other end of a `veth` is no link below it.
    #[serde(default)]
    pub parent: Option<String>,
    /// The bridge, bond or VRF it belongs to (`IFLA_MASTER`).
    #[serde(default)]
    pub master: Option<String>,
    /// Forwards IPv4 packets that come in by it (`net.ipv4.conf.NAME.forwarding`).
    #[serde(default)]
    pub forwards_ipv4: Option<bool>,
    /// Forwards IPv6 packets that come in by it (`net.ipv6.conf.NAME.forwarding`).
    #[serde(default)]
    pub forwards_ipv6: Option<bool>,
    /// Queues, rings, interrupts. Read for the tunnels and for [`Facts::outer_links`] alone.
    #[serde(default)]
    pub detail: Known<LinkDetail>,
}

impl Link {
    /// Does it carry packets inside others? `ppp` does not count: it is most often the way to a provider.
    pub fn is_tunnel(&self) -> bool {
        const KINDS: [&str; 18] = [
            "amt",
            "erspan",
            "geneve",
            "gre",
            "gretap",
            "ip6erspan",
            "ip6gre",
            "ip6gretap",
            "ip6tnl",
            "ipip",
            "ovpn",
            "sit",
            "tun",
            "vti",
            "vti6",
            "vxlan",
            "wireguard",
            "xfrm",
        ];
        // A `tap` of a virtual machine is a `tun` to the kernel, but belongs to a bridge.
        self.master.is_none()
            && self
                .kind
                .as_deref()
                .is_some_and(|kind| KINDS.contains(&kind))
    }
}

/// Who carries the tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Implementation {
    /// Link kind `wireguard`.
    Kernel,
    /// A `tun` link with a UAPI socket.
    Userspace {
        /// The daemon's process, when the process that holds the UAPI socket could be found.
        pid: Option<u32>,
        /// Name of its program.
        program: Option<String>,
        /// CPUs the daemon may run on, as in `Cpus_allowed_list`.
        cpus_allowed: Option<String>,
    },
}

/// One WireGuard device. Keys are public keys in base64; private and preshared keys never leave the reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tunnel {
    /// Interface name.
    pub name: String,
    /// Who carries it.
    pub implementation: Implementation,
    /// Interface MTU in bytes (copied from the link).
    pub mtu: u32,
    /// UDP port the device listens on.
    pub listen_port: Option<u16>,
    /// Firewall mark, 0 = none.
    pub fwmark: u32,
    /// Own public key.
    pub public_key: Option<String>,
    /// The peers.
    pub peers: Known<Vec<Peer>>,
    /// The UDP sockets of the device (one per address family); empty for a kernel tunnel's unlisted sockets.
    pub sockets: Known<Vec<UdpSocket>>,
    /// What the daemon tells beyond the standard interface; `None` when it has no socket for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Known<DeviceStatistics>>,
}

/// One peer of a WireGuard device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peer {
    /// Public key, base64.
    pub public_key: String,
    /// Where its packets go.
    pub endpoint: Option<SocketAddr>,
    /// Prefixes, `10.0.0.2/32`.
    pub allowed_ips: Vec<String>,
    /// Seconds since the last handshake; `None` = never.
    pub handshake_age: Option<f64>,
    /// Persistent keepalive in seconds; 0 = off.
    pub keepalive: u16,
    /// Bytes received (outer payload as WireGuard counts it).
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// A UDP socket as sock_diag shows it (`SK_MEMINFO`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpSocket {
    /// Local address.
    pub local: SocketAddr,
    /// Socket inode.
    pub inode: u32,
    /// Receive buffer limit in bytes (`SK_MEMINFO_RCVBUF`, twice the value given to `SO_RCVBUF`).
    pub receive_buffer: u32,
    /// Send buffer limit in bytes.
    pub send_buffer: u32,
    /// Bytes waiting to be read.
    pub receive_queue: u32,
    /// Datagrams dropped by this socket since it was opened (`SK_MEMINFO_DROPS`, wraps at 2^32).
    pub drops: u32,
    /// Process that holds the socket, and its descriptor there, where it could be found.
    pub holder: Option<SocketHolder>,
}

/// Which process holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketHolder {
    /// Process id.
    pub pid: u32,
    /// File descriptor in that process.
    pub fd: i32,
    /// Name of its program.
    pub program: String,
}

/// The way to one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointRoute {
    /// The endpoint's address (or a peer's inner address when `inside` is true).
    pub to: IpAddr,
    /// True for the route to the peer's address inside the tunnel.
    pub inside: bool,
    /// Outgoing interface.
    pub interface: Known<String>,
    /// Next hop, `None` = on link.
    pub gateway: Option<IpAddr>,
    /// Source address the kernel would take.
    pub source: Option<IpAddr>,
    /// MTU of the route (cached path MTU, route metric, or the link's), in bytes.
    pub mtu: Option<u32>,
    /// `congctl` metric of the route.
    pub congestion_control: Option<String>,
}

/// A packet filter in a few figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firewall {
    /// Rules per hook (`input`, `forward`, …).
    pub rules_per_hook: BTreeMap<String, usize>,
    /// Some rule sets the TCP maximum segment size.
    pub clamps_mss: bool,
    /// Some chain translates addresses.
    pub translates: bool,
    /// Some rule looks at or uses connection tracking (`ct …`, address translation, flow tables).
    #[serde(default)]
    pub uses_conntrack: bool,
    /// Names of the flow tables with the interfaces they work on.
    #[serde(default)]
    pub flowtables: BTreeMap<String, Vec<String>>,
    /// By tunnel interface: what the rules mean for its packets.
    #[serde(default)]
    pub tunnels: BTreeMap<String, TunnelFilter>,
    /// There are tables of `iptables-legacy` too, of which nft lists no rule.
    #[serde(default)]
    pub legacy: bool,
}
