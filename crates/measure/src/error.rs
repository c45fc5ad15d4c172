//! What can go wrong while measuring.

mod place;
mod reasons;
mod said;

use std::time::Duration;

use thiserror::Error;
use wirespeed_reach::ReachError;

pub use self::place::place_said;
pub use self::said::reach_said;

/// Why something could not be measured. Every message says what was tried, on which machine, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The interface does not exist, or is no WireGuard device.
    #[error("{machine} has no WireGuard interface {interface}; it has {}", listed(.known))]
    NoSuchInterface {
        /// Machine.
        machine: String,
        /// Name asked for.
        interface: String,
        /// WireGuard interfaces there are.
        known: Vec<String>,
    },
    /// No interface was named and there is not exactly one.
    #[error("name the WireGuard interface to look at: {machine} has {}", listed(.known))]
    WhichInterface {
        /// Machine.
        machine: String,
        /// WireGuard interfaces there are.
        known: Vec<String>,
    },
    /// Two machines of a chain that have nothing in common.
    #[error(
        "{here} and {far} share neither a WireGuard tunnel nor a network; name the machines in the order in which the traffic passes them"
    )]
    NotNeighbours {
        /// The one nearer to the start.
        here: String,
        /// The next.
        far: String,
    },
    /// The interface is administratively down.
    #[error(
        "{interface} on {machine} is down; bring it up first (ip link set {interface} up, or wg-quick up {interface})"
    )]
    InterfaceDown {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
    },
    /// The interface was there at the beginning, and is not any more.
    #[error(
        "{interface} on {machine} has gone since the measurement began: renamed or deleted; what was measured meanwhile counts for nothing; run the command again with the interface there is now"
    )]
    InterfaceGone {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
    },
    /// The device could not be asked for its peers.
    #[error(
        "the peers of {interface} on {machine} could not be read: {because}; run wirespeed as root there (sudo)"
    )]
    PeersUnknown {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
        /// The reason as the reader gave it.
        because: String,
    },
    /// The device has no peer.
    #[error("{interface} on {machine} has no peers; add one (wg set {interface} peer KEY …)")]
    NoPeers {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
    },
    /// Several peers, and nothing tells which one is meant.
    #[error("{interface} on {machine} has {} peers; choose one with --peer KEY: {}", .peers.len(), listed(.peers))]
    WhichPeer {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
        /// Public keys.
        peers: Vec<String>,
    },
    /// The peer asked for is none of the device's.
    #[error("{interface} on {machine} has no peer {peer}; it has {}", listed(.peers))]
    NoSuchPeer {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
        /// Public key asked for.
        peer: String,
        /// Public keys there are.
        peers: Vec<String>,
    },
    /// The far machine is not the other end of this tunnel.
    #[error(
        "{far} has no WireGuard device with the key of a peer of {interface} on {here}, and our key as its peer; is --far the other end of this tunnel?"
    )]
    WrongFarEnd {
        /// Machine here.
        here: String,
        /// Interface here.
        interface: String,
        /// The far machine.
        far: String,
    },
    /// An address that the measurement needs is not to be had.
    #[error("{what} of the tunnel {interface} on {machine} is not known: {because}")]
    NoAddress {
        /// Which address.
        what: String,
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
        /// Why not, and what to do.
        because: String,
    },
    /// Nothing at the far end could serve a load.
    #[error(
        "no load can be run: nothing is at the far end; give --far ssh://… or --far iperf3://…"
    )]
    NothingFar,
    /// iperf3 is not installed where it is needed.
    #[error(
        "iperf3 could not be started on {machine}: {because}; install it there (apt-get install iperf3)"
    )]
    NoIperf3 {
        /// Machine.
        machine: String,
        /// The system's reason.
        because: String,
    },
    /// The control connection was refused or not answered.
    #[error(
        "{machine} could not connect to the iperf3 server {server}: {because}; is a firewall between them, does it listen?"
    )]
    NoConnection {
        /// Machine.
        machine: String,
        /// `address port`.
        server: String,
        /// iperf3's words.
        because: String,
    },
    /// The server served somebody else, also after some waiting.
    #[error("the iperf3 server {server} was busy with another test for {} s; try again later", .waited.as_secs())]
    ServerBusy {
        /// `address port`.
        server: String,
        /// How long it was retried.
        waited: Duration,
    },
    /// iperf3 ended without having run the load.
    #[error("the {load} did not run on {machine}: {because}")]
    LoadFailed {
        /// The load in words.
        load: String,
        /// Machine of the client.
        machine: String,
        /// iperf3's words.
        because: String,
    },
    /// A probe could not be made.
    #[error("{what} could not be probed from {machine}: {because}")]
    ProbeFailed {
        /// What.
        what: String,
        /// Machine that probes.
        machine: String,
        /// Why.
        because: String,
    },
    /// Nothing comes back through the tunnel.
    #[error(
        "{interface} on {machine}: peer {peer} does not answer through the tunnel; {because}; is it up at the other end, and its port reachable?"
    )]
    TunnelSilent {
        /// Machine.
        machine: String,
        /// Interface.
        interface: String,
        /// Public key of the peer.
        peer: String,
        /// What is known of the reason.
        because: String,
    },
    /// The user (or a caller) asked to stop.
    #[error("stopped before the measurement was done")]
    Stopped,
    /// The machine could not be reached, or its answer made no sense.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A caller's preparation between two samples failed.
    #[error("{0}")]
    Preparation(String),
}

/// Names that an error tells; a hub has a thousand peers.
const LISTED: usize = 10;

fn listed(names: &[String]) -> String {
    let (told, more) = names.split_at(names.len().min(LISTED));
    match (told, more.len()) {
        ([], _) => "none".to_owned(),
        (_, 0) => told.join(", "),
        (_, more) => format!("{} and {more} more", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn a_thousand_names_are_not_told() {
        let names: Vec<String> = (0..1000).map(|number| format!("key{number}")).collect();
        assert_eq!(listed(&names[..2]), "key0, key1");
        assert!(listed(&names).ends_with("key9 and 990 more"));
        assert_eq!(listed(&[]), "none");
    }
}
