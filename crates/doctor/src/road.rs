//! What numbered datagrams, and the counters of the tunnel's peers, say of the road under the tunnel.

use wirespeed_measure::{Direction, SequenceProbe, Via};
use wirespeed_words::say;

use crate::view::{moved, receiver, sender};
use crate::{End, Evidence, EvidenceLine};

/// A probe that takes at most this share of the most that a load carried is no load on the road.
const NO_LOAD: f64 = 0.2;
/// The same where nobody knows what the road carries, bit/s.
const NO_LOAD_ANYWHERE: f64 = 1e6;
/// IPv4, UDP and Ethernet headers of each datagram, bytes.
const HEADERS: f64 = 42.0;

/// What became of the datagrams of one direction outside the tunnel, on a road without load; all such probes together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Unloaded {
    /// Left the sender.
    pub(crate) sent: u64,
    /// Never arrived at the receiver's socket.
    pub(crate) lost: u64,
    /// Losses by themselves: datagrams lost in a row are one.
    pub(crate) losses: u64,
    pub(crate) seconds: f64,
}

impl Unloaded {
    /// Share lost.
    pub(crate) fn lost_share(&self) -> f64 {
        share(self.lost, self.sent)
    }

    /// The share of separate losses is at least this, for all that can be known from so many datagrams.
    pub(crate) fn losses_at_least(&self) -> f64 {
        at_least(self.losses, self.sent)
    }
}

/// Counts the probes of a direction that were no load; `None` when there was none.
pub(crate) fn unloaded(evidence: &Evidence, direction: Direction) -> Option<Unloaded> {
    let most = best_rate(evidence, direction).map_or(NO_LOAD_ANYWHERE, |rate| rate * NO_LOAD);
    let mut all = Unloaded::default();
    for probe in probes(evidence, direction).filter(|probe| on_the_wire(probe) <= most) {
        let refused = probe.send_refused;
        let dropped = probe.receiver_dropped;
        let left = probe.sent.saturating_sub(refused);
        all.sent = all.sent.saturating_add(left);
        let lost = left.saturating_sub(probe.received).saturating_sub(dropped);
        all.lost = all.lost.saturating_add(lost);
        // What the ends themselves dropped leaves gaps, too.
        let losses = probe.gaps.saturating_sub(refused).saturating_sub(dropped);
        all.losses = all.losses.saturating_add(losses.min(lost));
        all.seconds += probe.seconds.clamp(0.0, 3600.0);
    }
    (all.sent > 0).then_some(all)
}

/// The probes outside the tunnel of one direction.
pub(crate) fn probes(
    evidence: &Evidence,
    direction: Direction,
) -> impl Iterator<Item = &SequenceProbe> {
    evidence
        .sequences
        .iter()
        .filter(move |probe| probe.via == Via::Bare && probe.direction == direction)
}

/// What the road carries: bare TCP, else what the tunnel carried.
pub(crate) fn road_rate(evidence: &Evidence, direction: Direction) -> Option<f64> {
    let comparison = evidence.comparison(direction)?;
    comparison
        .bare
        .or(Some(comparison.tunnel))
        .filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// The most that a load carried, inside or outside: a lossy road carries less in most of them than it could.
fn best_rate(evidence: &Evidence, direction: Direction) -> Option<f64> {
    [Via::Bare, Via::Tunnel]
        .into_iter()
        .flat_map(|via| evidence.samples(direction, via))
        .map(|sample| sample.rate)
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .max_by(f64::total_cmp)
}

/// Rate of a probe with its headers, bit/s.
fn on_the_wire(probe: &SequenceProbe) -> f64 {
    probe.offered * (1.0 + HEADERS / f64::from(probe.payload.max(1)))
}

/// Share of the tunnel's own packets that left one end during the loads and did not reach the other, by the peers'
/// counters at both ends (bytes as WireGuard counts them). `None` where they don't tell.
pub(crate) fn outer_loss(evidence: &Evidence, direction: Direction) -> Option<OuterLoss> {
    let key = |end: End| evidence.peer_at(end).map(|peer| peer.public_key.as_str());
    let (from, to) = (sender(direction), receiver(direction));
    let (their_key, our_key) = (key(from)?, key(to)?);
    let mut sum = OuterLoss::default();
    for sample in evidence.samples(direction, Via::Tunnel) {
        let sent = moved(sample, from)?.peers.get(their_key);
        let received = moved(sample, to)?.peers.get(our_key);
        let (Some(sent), Some(received)) = (sent, received) else {
            continue;
        };
        sum.sent = sum.sent.saturating_add(sent.tx_bytes);
        sum.received = sum.received.saturating_add(received.rx_bytes);
    }
    (sum.sent > 0).then_some(sum)
}

/// Bytes of the tunnel's own packets, sent at one end and received at the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OuterLoss {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl OuterLoss {
    pub(crate) fn share(&self) -> f64 {
        share(self.sent.saturating_sub(self.received), self.sent)
    }

    pub(crate) fn line(&self, evidence: &Evidence, direction: Direction) -> EvidenceLine {
        crate::finding::line(
            say!("doctor-line-transfer", direction = direction.word()),
            say!(
                "doctor-both",
                one = evidence.interface_at(sender(direction)),
                other = evidence.interface_at(receiver(direction))
            ),
            self.sent,
            self.received,
            "bytes",
        )
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        (part as f64 / of as f64).clamp(0.0, 1.0)
    }
}

/// Lower end of the 95 % interval of a share (Wilson 1927), which holds for few events, too.
pub(crate) fn at_least(events: u64, of: u64) -> f64 {
    const Z: f64 = 1.96;
    if of == 0 || events == 0 {
        return 0.0;
    }
    let count = of as f64;
    let share = share(events, of);
    let middle = share + Z * Z / (2.0 * count);
    let width = Z * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
    ((middle - width) / (1.0 + Z * Z / count)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use wirespeed_measure::Direction;

    use super::{at_least, outer_loss, unloaded};
    use crate::testing::{healthy, sequence, set_outer};

    #[test]
    fn the_bound_is_wilsons() {
        assert!((at_least(3, 3000) - 0.000_34).abs() < 1e-5);
        assert!((at_least(30, 3000) - 0.007_0).abs() < 1e-4);
        assert!(at_least(0, 3000) <= 0.0);
        assert!(at_least(5, 0) <= 0.0);
    }

    #[test]
    fn probes_are_counted_together_unless_they_are_a_load() {
        let mut evidence = healthy();
        evidence.sequences = vec![
            sequence(Direction::Upload, 3000, 30),
            sequence(Direction::Upload, 5000, 50),
        ];
        let all = unloaded(&evidence, Direction::Upload).unwrap();
        assert_eq!((all.sent, all.lost, all.losses), (8000, 80, 80));
        assert_eq!(unloaded(&evidence, Direction::Download), None);
        evidence.sequences[1].offered = 20e6;
        assert_eq!(unloaded(&evidence, Direction::Upload).unwrap().sent, 3000);
    }

    #[test]
    fn what_the_ends_dropped_is_not_the_roads() {
        let mut evidence = healthy();
        evidence.sequences = vec![sequence(Direction::Upload, 3000, 30)];
        evidence.sequences[0].receiver_dropped = 20;
        evidence.sequences[0].send_refused = 8;
        let all = unloaded(&evidence, Direction::Upload).unwrap();
        assert_eq!((all.lost, all.losses), (2, 2));
    }

    #[test]
    fn the_peers_counters_tell_what_was_lost_outside() {
        let mut evidence = healthy();
        assert_eq!(outer_loss(&evidence, Direction::Upload), None);
        set_outer(&mut evidence, Direction::Upload, 1000, 900);
        assert!((outer_loss(&evidence, Direction::Upload).unwrap().share() - 0.1).abs() < 1e-9);
        // What is counted later than it was sent is no loss.
        set_outer(&mut evidence, Direction::Upload, 1000, 1001);
        let loss = outer_loss(&evidence, Direction::Upload).unwrap();
        assert!(loss.share() <= 0.0);
    }
}
