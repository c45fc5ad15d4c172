//! What the packet filter does with a tunnel's packets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the packet filter means for one tunnel. Rules are counted that a packet may have to be compared with, up to
/// the first that certainly decides; jumps that such a packet cannot take are not followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TunnelFilter {
    /// Rules per hook in the way of an outer packet that comes in (UDP to the listen port).
    pub outer_in: BTreeMap<String, usize>,
    /// Rules per hook in the way of an outer packet that leaves (UDP from the listen port).
    pub outer_out: BTreeMap<String, usize>,
    /// Rules per hook in the way of an inner packet that comes out of the tunnel, for this machine or others.
    pub inner_in: BTreeMap<String, usize>,
    /// Rules per hook in the way of an inner packet that goes into the tunnel, from this machine or others.
    pub inner_out: BTreeMap<String, usize>,
    /// Outer packets are kept out of connection tracking (`notrack`), both ways.
    pub outer_untracked: bool,
    /// Inner packets are kept out of connection tracking, both ways.
    pub inner_untracked: bool,
    /// Some rule may look at the connection of outer packets (`ct state`, `ct mark` …): NOTRACK would change its
    /// meaning. wg-quick's rules for a full tunnel are such.
    pub outer_uses_conntrack: bool,
    /// Some rule may look at the connection of inner packets.
    pub inner_uses_conntrack: bool,
    /// Some rule may translate addresses of inner packets (masquerade on the tunnel).
    pub inner_translated: bool,
    /// Some rule may clamp the segment size of TCP connections that are forwarded into or out of the tunnel.
    pub clamps_mss: bool,
    /// A flow table works on the tunnel's interface.
    pub in_flowtable: bool,
}
