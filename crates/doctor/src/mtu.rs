//! What a direction's probes say of the tunnel's MTU; the three MTU causes share it.
//!
//! An error that comes back, or a route, is somebody's word. Echo requests that are merely lost are not: they count where
//! the loads bear them out, for less where nothing does, and not at all where the loads prove the contrary.

mod loads;

use std::net::IpAddr;

use serde_json::json;
use wirespeed_measure::{Direction, PathMtu, TunnelSweep};
use wirespeed_settings::{Setting, shell_word};
use wirespeed_words::say;

use crate::cards;
use crate::finding::{command, line, rates_line, remedy_of};
use crate::view::{DIRECTIONS, ENDS, receiver, sender, way};
use crate::{Change, End, Evidence, EvidenceLine, Goal, Remedy};

/// The smallest MTU IPv6 allows (RFC 8200, section 5).
pub(crate) const IPV6_MINIMUM: u32 = 1280;

/// Below this no MTU is proposed: IPv4 hosts need not take more (RFC 791), so the probe is to be doubted, not the tunnel.
const SMALLEST_SENSIBLE: u32 = 576;

/// Data of a WireGuard packet is filled up to a multiple of so many bytes.
const PADDING: u32 = 16;

/// Sizes inside the tunnel that lie further apart agree with nearly any limit outside, bytes.
const TELLING_STEP: u32 = 40;

/// A tunnel below this share of bare for sure may be so because of its sizes.
const FULL_SPEED: f64 = 0.8;

/// The tunnel's packets do not fit the path of this direction.
#[derive(Debug, Clone)]
pub(crate) struct Excess<'a> {
    pub(crate) direction: Direction,
    /// Inner MTU at the sender.
    pub(crate) tunnel_mtu: u32,
    /// The same packet outside, in bytes.
    pub(crate) outer: u32,
    /// What the path carries, where the outer probe tells.
    pub(crate) path_mtu: Option<u32>,
    /// Largest inner packet this direction carries.
    pub(crate) fitting: Option<u32>,
    /// The size is lost without any error coming back.
    pub(crate) silent: bool,
    /// Somebody on the way said so: an error that came back, or the sender's own route.
    heard: bool,
    /// Echo requests are lost, and nothing else bears out that the tunnel's packets are.
    pub(crate) doubtful: bool,
    pub(crate) probe: Option<&'a PathMtu>,
    pub(crate) sweep: Option<&'a TunnelSweep>,
}

/// Bytes a tunnel packet grows by outside: 20 or 40 of IP, 8 of UDP, 32 of WireGuard.
pub(crate) fn overhead(evidence: &Evidence) -> u32 {
    let endpoint = ENDS
        .iter()
        .find_map(|end| evidence.peer_at(*end)?.endpoint)
        .map(|endpoint| endpoint.ip().to_canonical());
    match endpoint {
        Some(IpAddr::V6(_)) => 80,
        _ => 60,
    }
}

pub(crate) fn probe(evidence: &Evidence, direction: Direction) -> Option<&PathMtu> {
    evidence
        .path_mtu
        .iter()
        .find(|probe| probe.direction == direction)
}

fn sweep(evidence: &Evidence, direction: Direction) -> Option<&TunnelSweep> {
    evidence
        .tunnel_sweep
        .iter()
        .find(|sweep| sweep.direction == direction)
}

/// Does a size that the tunnel's MTU allows not come out of it?
fn lost_inside(sweep: Option<&TunnelSweep>, mtu: u32) -> bool {
    let failed = sweep.and_then(|sweep| sweep.smallest_failed);
    failed.is_some_and(|failed| failed <= mtu)
}

/// The MTU a probe proves: what passed, or what was reported between that and the first size that failed.
pub(crate) fn proved(probe: &PathMtu) -> Option<u32> {
    match (probe.largest_passed, probe.reported) {
        (Some(passed), Some(reported))
            if reported > passed
                && probe.smallest_failed.is_none_or(|failed| reported < failed) =>
        {
            Some(reported)
        }
        (Some(passed), _) => Some(passed),
        (None, reported) => reported,
    }
}

/// MTU of the sender's route to the endpoint; it must be that of the peer in question.
fn route_mtu(evidence: &Evidence, direction: Direction) -> Option<u32> {
    cards::route(evidence, sender(direction))?.mtu
}

/// Does the tunnel's MTU exceed what the path of this direction carries?
pub(crate) fn excess(evidence: &Evidence, direction: Direction) -> Option<Excess<'_>> {
    suspected(evidence, direction).filter(|excess| !excess.disproved(evidence))
}

/// Is it slow by its sizes in this direction? A doubtful excess explains nothing.
pub(crate) fn slows(evidence: &Evidence, direction: Direction) -> bool {
    excess(evidence, direction).is_some_and(|excess| !excess.doubtful)
}

/// Echo requests of this direction that are lost although packets of that size arrive: the limit they made believe, and
/// the inner packet that did arrive, in bytes.
pub(crate) fn filtered(evidence: &Evidence, direction: Direction) -> Option<(u32, u32)> {
    let excess = suspected(evidence, direction)?;
    excess
        .disproved(evidence)
        .then(|| excess.fitting.zip(loads::arrived(evidence, direction)))?
}

/// What the probes say by themselves.
fn suspected(evidence: &Evidence, direction: Direction) -> Option<Excess<'_>> {
    let tunnel = evidence.tunnel(sender(direction))?;
    let overhead = overhead(evidence);
    let outer = tunnel.mtu.saturating_add(overhead);
    let probe = probe(evidence, direction);
    let sweep = sweep(evidence, direction);
    let passes =
        probe.is_some_and(|probe| probe.largest_passed.is_some_and(|passed| passed >= outer));
    let told = probe.is_some_and(|probe| probe.reported.is_some_and(|reported| outer > reported));
    let fails = told
        || probe.is_some_and(|probe| probe.smallest_failed.is_some_and(|failed| outer >= failed));
    // Without a probe the sender's own route still tells: its link, or what it has learnt of the path.
    let known = match probe {
        Some(_) => None,
        None => route_mtu(evidence, direction).filter(|mtu| *mtu < outer),
    };
    if passes || !(fails || lost_inside(sweep, tunnel.mtu) || known.is_some()) {
        return None;
    }
    let path_mtu = if fails { probe.and_then(proved) } else { known };
    let fitting = path_mtu
        .map(|mtu| mtu.saturating_sub(overhead))
        .or_else(|| sweep.and_then(|sweep| sweep.largest_passed));
    let mut excess = Excess {
        direction,
        tunnel_mtu: tunnel.mtu,
        outer,
        path_mtu,
        fitting,
        silent: fails && probe.is_some_and(|probe| probe.silent_loss),
        heard: told || known.is_some(),
        doubtful: false,
        probe,
        sweep,
    };
    excess.doubtful = excess.is_doubtful(evidence);
    Some(excess)
}

impl Excess<'_> {
    /// Packets are in pieces, two probes that know nothing of each other say the same, or nothing gets through and the
    /// tunnel's own sizes don't speak against it: no doubt left. A tunnel may stall for many reasons.
    pub(crate) fn confirmed(&self, evidence: &Evidence) -> bool {
        let told = self.heard || self.agrees(evidence);
        in_pieces(evidence, self.direction)
            || self.lost_inside() && told
            || evidence.stalled(self.direction) && (told || self.lost_above_it())
    }

    /// The loads were made of packets that these echo requests make believe to be too large, and those arrived in one piece.
    fn disproved(&self, evidence: &Evidence) -> bool {
        !self.heard
            && self.outgrown(evidence)
            && !in_pieces(evidence, self.direction)
            // In how many pieces they came is of no matter where they are said not to come out of the tunnel at all.
            && (self.path_mtu.is_none() || loads::pieces_would_show(evidence, self.direction))
    }

    fn is_doubtful(&self, evidence: &Evidence) -> bool {
        // What is slow although larger packets arrive is so for another reason.
        let larger = self.outgrown(evidence) || self.outgrown_inside();
        let hurts = evidence.stalled(self.direction)
            || in_pieces(evidence, self.direction)
            || !larger && evidence.below(self.direction, FULL_SPEED) == Some(true);
        !(self.heard || hurts) && (larger || !self.agrees(evidence))
    }

    /// Did larger packets of the loads arrive than these probes let pass?
    fn outgrown(&self, evidence: &Evidence) -> bool {
        self.is_less_than(loads::arrived(evidence, self.direction))
    }

    /// Did a larger echo request come out of the tunnel?
    fn outgrown_inside(&self) -> bool {
        self.is_less_than(self.sweep.and_then(|sweep| sweep.largest_passed))
    }

    fn is_less_than(&self, size: Option<u32>) -> bool {
        let sizes = self.fitting.zip(size);
        sizes.is_some_and(|(fitting, size)| size > fitting)
    }

    /// Is every size inside the tunnel lost that the probe outside says not to fit?
    fn lost_above_it(&self) -> bool {
        self.lost_inside() && !self.outgrown_inside()
    }

    /// Do the probes outside and inside the tunnel come to the same limit, each in its own bytes? A filter that drops
    /// large echo requests has the same number for both, and one that counts them has two that have nothing to do with
    /// each other.
    fn agrees(&self, evidence: &Evidence) -> bool {
        let bounds = self
            .sweep
            .and_then(|sweep| sweep.largest_passed.zip(sweep.smallest_failed));
        let (Some(path), Some((passed, failed))) = (self.path_mtu, bounds) else {
            return false;
        };
        // WireGuard fills up to sixteen bytes, but not beyond its MTU; BoringTun does not fill up at all.
        let overhead = overhead(evidence);
        let padded = failed.div_ceil(PADDING).saturating_mul(PADDING);
        let lost = padded.min(self.tunnel_mtu).saturating_add(overhead);
        failed.saturating_sub(passed) <= TELLING_STEP
            && (passed.saturating_add(overhead)..lost).contains(&path)
    }

    fn lost_inside(&self) -> bool {
        lost_inside(self.sweep, self.tunnel_mtu)
    }

    /// The probes as lines of evidence.
    pub(crate) fn lines(&self, evidence: &Evidence) -> Vec<EvidenceLine> {
        let way = way(
            evidence.name(sender(self.direction)),
            evidence.name(receiver(self.direction)),
        );
        let mut lines = vec![line(
            say!("mtu-line-outside"),
            &way,
            self.path_mtu,
            self.outer,
            "bytes",
        )];
        if self.probe.is_none() && self.path_mtu.is_some() {
            lines.push(line(
                say!("mtu-line-route"),
                evidence.name(sender(self.direction)),
                (),
                self.path_mtu,
                "bytes",
            ));
        }
        if let Some(probe) = self.probe {
            lines.push(line(
                say!("mtu-line-probe", method = &probe.method),
                &way,
                probe.largest_passed,
                probe.smallest_failed,
                "bytes",
            ));
            lines.push(line(
                say!("mtu-line-reported"),
                &way,
                json!(null),
                probe.reported.map_or(json!(false), |mtu| json!(mtu)),
                if probe.reported.is_some() {
                    "bytes"
                } else {
                    ""
                },
            ));
        }
        if let Some(sweep) = self.sweep {
            lines.push(line(
                say!("mtu-line-sweep"),
                &way,
                sweep.largest_passed,
                sweep.smallest_failed,
                "bytes",
            ));
        }
        lines.extend(fragments(evidence, self.direction));
        lines.extend(rates_line(evidence, self.direction));
        lines
    }
}

/// Were the packets of the loads cut in pieces? Other traffic of the machines leaves a few, but a tunnel that is too large
/// has two for each full packet.
fn in_pieces(evidence: &Evidence, direction: Direction) -> bool {
    let full = evidence
        .tunnel(sender(direction))
        .map_or(IPV6_MINIMUM, |tunnel| tunnel.mtu.max(1));
    let packets = loads::bytes(evidence, direction) / u64::from(full);
    let most = pieces(evidence, direction).map(|(.., count)| count).max();
    packets > 0 && most.is_some_and(|most| most > 0 && most >= packets / 2)
}

/// Fragmentation counters that moved while the tunnel was loaded.
fn fragments(evidence: &Evidence, direction: Direction) -> Vec<EvidenceLine> {
    pieces(evidence, direction)
        .filter(|(.., count)| *count > 0)
        .map(|(end, counter, count)| {
            line(
                say!(
                    "doctor-line-counter",
                    counter = counter.replace('.', " "),
                    direction = direction.word()
                ),
                evidence.name(end),
                0,
                count,
                "packets",
            )
        })
        .collect()
}

/// What each fragmentation counter of each end moved while the tunnel was loaded.
fn pieces(
    evidence: &Evidence,
    direction: Direction,
) -> impl Iterator<Item = (End, &'static str, u64)> {
    let sending = [
        "Ip.FragCreates",
        "Ip.FragFails",
        "Ip6.FragCreates",
        "Ip6.FragFails",
    ]
    .map(|counter| (sender(direction), counter));
    let receiving = [
        "Ip.ReasmReqds",
        "Ip.ReasmFails",
        "Ip6.ReasmReqds",
        "Ip6.ReasmFails",
    ]
    .map(|counter| (receiver(direction), counter));
    sending
        .into_iter()
        .chain(receiving)
        .map(move |(end, counter)| (end, counter, evidence.counted(direction, end, counter)))
}

/// The MTU both directions carry, as far as they are known, or with what is only suspected of them.
pub(crate) fn fitting_both(evidence: &Evidence, suspicions: bool) -> Option<u32> {
    let overhead = overhead(evidence);
    DIRECTIONS
        .into_iter()
        .filter_map(|direction| {
            if let Some(excess) = suspected(evidence, direction) {
                let counts = !excess.doubtful || suspicions;
                return excess
                    .fitting
                    .filter(|_| counts && !excess.disproved(evidence));
            }
            Some(proved(probe(evidence, direction)?)?.saturating_sub(overhead))
        })
        .min()
        .filter(|mtu| *mtu >= SMALLEST_SENSIBLE)
}

/// Sets the tunnel's MTU at every end where it differs in the wanted direction.
pub(crate) fn set_mtu(
    evidence: &Evidence,
    mtu: u32,
    title: String,
    wanted: fn(now: u32, then: u32) -> bool,
    risk: String,
) -> Remedy {
    let changes = ENDS
        .into_iter()
        .filter_map(|end| Some((end, evidence.tunnel(end)?)))
        .filter(|(_, tunnel)| wanted(tunnel.mtu, mtu))
        .map(|(end, tunnel)| {
            let setting = Setting::LinkMtu {
                interface: tunnel.name.clone(),
            };
            (
                Change {
                    end,
                    setting,
                    value: json!(mtu),
                },
                json!(tunnel.mtu),
            )
        })
        .collect();
    let mut remedy = remedy_of(evidence, title, changes, Goal::Goodput, risk);
    if evidence.tunnel(End::Far).is_none() {
        let name = evidence.far_interface.as_deref().unwrap_or("WG");
        remedy.commands.push(command(
            evidence,
            End::Far,
            format!("ip link set dev {} mtu {mtu}", shell_word(name)),
        ));
    }
    remedy
}
