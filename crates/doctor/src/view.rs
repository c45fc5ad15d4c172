//! How checks look at the evidence: ends by direction, the tunnel at an end, the samples of a direction.

use wirespeed_facts::{CountersDelta, Facts, Implementation, Peer, Tunnel};
use wirespeed_measure::{Comparison, Direction, Protocol, RateSweep, Sample, Via};
use wirespeed_words::say;

use crate::{End, Evidence};

/// Fewer samples than this carry no median worth a finding.
pub(crate) const FEWEST_SAMPLES: usize = 3;

/// Fewer pairs than this prove no difference between two sides: the interval of a median covers 94 % with five.
pub(crate) const FEWEST_PAIRS: usize = 5;

/// Both directions, in the order they are reported.
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::Upload, Direction::Download];

/// Both ends, in the order they are reported.
pub(crate) const ENDS: [End; 2] = [End::Here, End::Far];

/// Who sends in this direction.
pub(crate) fn sender(direction: Direction) -> End {
    match direction {
        Direction::Upload => End::Here,
        Direction::Download => End::Far,
    }
}

/// Who receives in this direction.
pub(crate) fn receiver(direction: Direction) -> End {
    match direction {
        Direction::Upload => End::Far,
        Direction::Download => End::Here,
    }
}

/// What the tunnel's comparison with its road is called where it is missing.
pub(crate) fn comparison_of(direction: Direction) -> String {
    say!("doctor-comparison-of", direction = direction.word())
}

/// From one machine to another.
pub(crate) fn way(from: &str, to: &str) -> String {
    say!("doctor-way", from = from, to = to)
}

/// Something of a machine, and the machine: an interface, a card, a group.
pub(crate) fn on(what: &str, host: &str) -> String {
    say!("doctor-on", what = what, host = host)
}

/// The direction of a load, or that nothing but the user's own traffic flowed.
pub(crate) fn or_watched(direction: Option<Direction>) -> String {
    direction.map_or_else(|| say!("doctor-watched"), Direction::word)
}

/// The one direction, or none when it is about both.
pub(crate) fn only(directions: &[Direction]) -> Option<Direction> {
    match directions {
        [one] => Some(*one),
        _ => None,
    }
}

/// What moved at one end while a sample ran.
pub(crate) fn moved(sample: &Sample, end: End) -> Option<&CountersDelta> {
    match end {
        End::Here => Some(&sample.here),
        End::Far => sample.far.as_ref(),
    }
}

/// The middle value; the mean of the two middle ones for an even count.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values
        .into_iter()
        .filter(|value| value.is_finite())
        .collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

impl Evidence {
    pub(crate) fn name(&self, end: End) -> &str {
        match end {
            End::Here => &self.here_name,
            End::Far => &self.far_name,
        }
    }

    pub(crate) fn facts(&self, end: End) -> Option<&Facts> {
        match end {
            End::Here => Some(&self.here),
            End::Far => self.far.as_ref(),
        }
    }

    /// The tunnel in question at one end. At the far end it is the one named, else the one with the peer's key.
    pub(crate) fn tunnel(&self, end: End) -> Option<&Tunnel> {
        let tunnels = &self.facts(end)?.tunnels;
        match end {
            End::Here => tunnels.iter().find(|tunnel| tunnel.name == self.interface),
            End::Far => match &self.far_interface {
                Some(name) => tunnels.iter().find(|tunnel| &tunnel.name == name),
                None => tunnels
                    .iter()
                    .find(|tunnel| self.peer.is_some() && tunnel.public_key == self.peer),
            },
        }
    }

    /// The peer of the tunnel at one end that is the other end.
    pub(crate) fn peer_at(&self, end: End) -> Option<&Peer> {
        let other = match end {
            End::Here => End::Far,
            End::Far => End::Here,
        };
        let key = self
            .tunnel(other)
            .and_then(|tunnel| tunnel.public_key.as_ref())
            .or(match end {
                End::Here => self.peer.as_ref(),
                End::Far => None,
            })?;
        self.tunnel(end)?
            .peers
            .value()?
            .iter()
            .find(|peer| &peer.public_key == key)
    }

    /// True when the tunnel at this end is known to be carried by a program, not by the kernel.
    pub(crate) fn is_userspace(&self, end: End) -> bool {
        self.tunnel(end)
            .is_some_and(|tunnel| matches!(tunnel.implementation, Implementation::Userspace { .. }))
    }

    /// `wg0 on gw1`.
    pub(crate) fn interface_at(&self, end: End) -> String {
        match self.tunnel(end) {
            Some(tunnel) => on(&tunnel.name, self.name(end)),
            None => self.name(end).to_owned(),
        }
    }

    /// Are both ends namespaces of one kernel, and so share cores and processes?
    pub(crate) fn one_kernel(&self) -> bool {
        let boot_id = |end| self.facts(end).and_then(|facts| facts.host.boot_id.value());
        match (boot_id(End::Here), boot_id(End::Far)) {
            (Some(here), Some(far)) => here == far,
            _ => false,
        }
    }

    /// The TCP comparison of a direction: that with one stream if there is one.
    pub(crate) fn comparison(&self, direction: Direction) -> Option<&Comparison> {
        let mut of_direction = self
            .comparisons
            .iter()
            .filter(|one| one.direction == direction && one.protocol == Protocol::Tcp);
        let first = of_direction.clone().next();
        of_direction.find(|one| one.streams == 1).or(first)
    }

    /// Samples of one side of the comparison of a direction.
    pub(crate) fn samples(&self, direction: Direction, via: Via) -> Vec<&Sample> {
        self.comparison(direction)
            .map(|comparison| comparison.of(via).collect())
            .unwrap_or_default()
    }

    /// The longer load of one direction, through the tunnel or outside it.
    pub(crate) fn soak(&self, direction: Direction, via: Via) -> Option<&Sample> {
        let mut soaks = self.soaks.iter();
        soaks.find(|soak| soak.load.direction == direction && soak.load.via == via)
    }

    /// The search for the highest rate that stays stable.
    pub(crate) fn sweep(&self, direction: Direction) -> Option<&RateSweep> {
        let mut sweeps = self.sweeps.iter();
        sweeps.find(|sweep| sweep.direction == direction)
    }

    /// What several connections did through the tunnel together.
    pub(crate) fn together(&self, direction: Direction) -> Option<&Sample> {
        let soak = self.soak(direction, Via::Tunnel);
        soak.filter(|soak| soak.load.streams > 1)
    }

    /// Did any load run through the tunnel?
    pub(crate) fn loaded(&self) -> bool {
        DIRECTIONS
            .iter()
            .any(|direction| !self.samples(*direction, Via::Tunnel).is_empty())
    }

    /// Was the tunnel compared with its road in this direction, and often enough for a verdict?
    pub(crate) fn settled(&self, direction: Direction) -> bool {
        self.comparison(direction).is_some_and(|comparison| {
            comparison.ratio_high.is_some() && comparison.pairs.len() >= FEWEST_PAIRS
        })
    }

    /// Most samples through the tunnel moved nothing, and it was not a single one.
    pub(crate) fn stalled(&self, direction: Direction) -> bool {
        let samples = self.samples(direction, Via::Tunnel);
        let stalled = samples.iter().filter(|sample| sample.stalled).count();
        stalled >= 2 && stalled * 2 > samples.len()
    }

    /// The whole interval of tunnel/bare lies below `share`, and enough pairs say so; `None` when there is no ratio.
    pub(crate) fn below(&self, direction: Direction, share: f64) -> Option<bool> {
        let comparison = self.comparison(direction)?;
        let high = comparison.ratio_high?;
        Some(high < share && comparison.pairs.len() >= FEWEST_PAIRS)
    }

    /// The tunnel stalls, or carries less than half of bare for sure.
    pub(crate) fn crippled(&self, direction: Direction) -> bool {
        self.stalled(direction) || self.below(direction, 0.5) == Some(true)
    }

    /// The largest [`Evidence::lost_share`] of some directions; 0 of none.
    pub(crate) fn worst_lost_share(&self, directions: &[Direction]) -> f64 {
        directions
            .iter()
            .map(|direction| self.lost_share(*direction))
            .fold(0.0, f64::max)
    }

    /// Share of the bare rate that is lost, 0 to 1; one half where there is no ratio.
    pub(crate) fn lost_share(&self, direction: Direction) -> f64 {
        if self.stalled(direction) {
            return 1.0;
        }
        self.comparison(direction)
            .and_then(|comparison| comparison.ratio)
            .map_or(0.5, |ratio| (1.0 - ratio).clamp(0.0, 1.0))
    }

    /// A counter of `/proc/net/snmp` or `netstat`, summed over the tunnel samples of a direction.
    pub(crate) fn counted(&self, direction: Direction, end: End, counter: &str) -> u64 {
        self.samples(direction, Via::Tunnel)
            .into_iter()
            .filter_map(|sample| moved(sample, end)?.protocols.get(counter))
            .fold(0, |sum, one| sum.saturating_add(*one))
    }
}
