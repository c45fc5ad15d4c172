//! The road of a scenario: rate, delay, loss and what else it does to packets, per direction.

use serde::{Deserialize, Serialize};
use wirespeed_words::say;

use crate::units::{Loss, Mtu, Queue, Rate, Span};

/// The road: what is the same in both directions, and what differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Road {
    /// Both directions.
    pub both: Way,
    /// From the first end (client, gw1) to the second; wins over `both`.
    pub up: Way,
    /// From the second end (server, gw2) to the first; wins over `both`.
    pub down: Way,
    /// The road lowers the MSS that TCP connections announce to what fits its MTU, as most access routers do: then
    /// plain TCP never meets the narrow place, and a tunnel does.
    pub clamp_mss: bool,
    /// The road translates the first end's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<Nat>,
}

impl Road {
    /// One direction with everything that `both` says about it.
    pub fn way(&self, direction: RoadDirection) -> Way {
        let (own, both) = match direction {
            RoadDirection::Up => (&self.up, &self.both),
            RoadDirection::Down => (&self.down, &self.both),
        };
        Way {
            rate: own.rate.or(both.rate),
            mtu: own.mtu.or(both.mtu),
            delay: own.delay.or(both.delay),
            loss: own.loss.or(both.loss),
            queue: own.queue.or(both.queue),
            icmp: own.icmp.or(both.icmp),
            reorder: own.reorder.or(both.reorder),
            reorder_by: own.reorder_by.or(both.reorder_by),
            duplicate: own.duplicate.or(both.duplicate),
            duplicate_by: own.duplicate_by.or(both.duplicate_by),
            collapse_above: own.collapse_above.or(both.collapse_above),
            collapse_udp_above: own.collapse_udp_above.or(both.collapse_udp_above),
            udp_rate: own.udp_rate.or(both.udp_rate),
            udp_port: own.udp_port.or(both.udp_port),
            super_packets: own.super_packets.or(both.super_packets),
        }
    }

    /// The most TCP payload, in bit/s, that the slower direction can carry through a WireGuard tunnel of that MTU over
    /// IPv4; `None` when neither direction has a rate.
    ///
    /// A full inner packet carries its MTU less 52 bytes (IPv4 and TCP with timestamps, RFC 7323), and takes 60 bytes more
    /// outside (IPv4, UDP, WireGuard's header and tag) and 14 for Ethernet, which the road's `tbf` counts too.
    pub fn possible_goodput(&self, tunnel_mtu: u32) -> Option<f64> {
        let rate = [RoadDirection::Up, RoadDirection::Down]
            .into_iter()
            .filter_map(|direction| self.way(direction).rate)
            .map(Rate::bits_per_second)
            .min()? as f64;
        let mtu = f64::from(tunnel_mtu);
        Some(rate * (mtu - 52.0) / (mtu + 60.0 + 14.0))
    }
}

/// One direction of the road.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RoadDirection {
    /// From the first end (client, gw1) to the second.
    Up,
    /// From the second end (server, gw2) to the first.
    Down,
}

/// What one direction of the road does to packets. What is left out does nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Bottleneck rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Larger packets are fragmented, or refused with "fragmentation needed".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// One-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Share of packets lost at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Length of the queue before the bottleneck; needs `rate`. 20 ms unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Do the ICMP errors about packets of this direction reach their sender?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icmp: Option<Fate>,
    /// Share of packets that are held for `reorder_by` longer, so that later ones overtake them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Loss>,
    /// How much longer those are held; 5 ms unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_by: Option<Span>,
    /// Share of packets that come twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Loss>,
    /// How much later the second copy comes; at once unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_by: Option<Span>,
    /// Above this rate the road gives up for a while and carries a part of it only, as an overrun modem or policer does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse_above: Option<Rate>,
    /// The same for UDP alone: other packets neither count nor suffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse_udp_above: Option<Rate>,
    /// What there is of UDP above this rate is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_rate: Option<Rate>,
    /// `udp_rate` is for this destination port alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<u16>,
    /// What becomes of UDP packets that segmentation offload has joined and that nobody has cut up again?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub super_packets: Option<Fate>,
}

impl Way {
    /// Is there anything that only the device which holds packets can do?
    pub(crate) fn needs_device(&self) -> bool {
        self.delay.is_some_and(|delay| !delay.duration().is_zero()) || self.needs_emulator()
    }

    /// Is there anything in it that the kernel's netem can't do, or does in a way of its own?
    pub(crate) fn needs_emulator(&self) -> bool {
        self.reorder.is_some()
            || self.duplicate.is_some()
            || self.collapse_above.is_some()
            || self.collapse_udp_above.is_some()
    }

    /// What the types can't say; `links` is the MTU of the cables.
    pub(crate) fn check(&self, links: Mtu) -> Result<(), String> {
        let without = |what: bool, needed: bool| what && !needed;
        let needs_share = |key: &str, share: &str| {
            Err(say!("lab-scenario-needs-share", key = key, share = share))
        };
        if without(self.queue.is_some(), self.rate.is_some()) {
            Err(say!("lab-scenario-queue"))
        } else if self.mtu > Some(links) {
            Err(say!("lab-scenario-mtu"))
        } else if self.delay.is_some_and(|d| d.duration().as_secs() >= 10) {
            Err(say!("lab-scenario-delay"))
        } else if without(self.reorder_by.is_some(), self.reorder.is_some()) {
            needs_share("reorder_by", "reorder")
        } else if without(self.duplicate_by.is_some(), self.duplicate.is_some()) {
            needs_share("duplicate_by", "duplicate")
        } else if [self.reorder_by, self.duplicate_by]
            .into_iter()
            .flatten()
            .any(|by| by.duration().as_secs() >= 2)
        {
            Err(say!("lab-scenario-late"))
        } else if without(self.udp_port.is_some(), self.udp_rate.is_some()) {
            Err(say!(
                "lab-scenario-needs",
                key = "udp_port",
                other = "udp_rate"
            ))
        } else if self.collapse_above.is_some() && self.collapse_udp_above.is_some() {
            Err(say!("lab-scenario-either"))
        } else {
            Ok(())
        }
    }
}

/// What becomes of packets of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// They arrive.
    #[default]
    Pass,
    /// They are lost without a word.
    Drop,
}

/// Address translation (masquerading) on the road for the first end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nat {
    /// How long a UDP mapping lives without traffic; whole seconds.
    pub udp_timeout: Span,
}
