//! Packets that a machine itself lost while the tunnel carried something: over which readings they are summed, and from
//! when on they are too many.

use wirespeed_facts::{CountersDelta, Facts};
use wirespeed_measure::{Direction, Via};

use crate::cards::{outer_links, outer_names};
use crate::view::{DIRECTIONS, moved};
use crate::{End, Evidence, Severity};

/// Fewer than this in all are the start of a connection, not a fault.
const TOLERATED: u64 = 20;
/// One lost packet in this many costs TCP nothing one could measure.
const TOLERATED_ONE_IN: u64 = 5000;
/// Readings that must show it: one alone may be somebody else's burst.
const FEWEST_READINGS: usize = 2;

/// Readings of the same work.
pub(crate) struct Period<'a> {
    /// Loaded in this direction; `None` when nothing but the user's own traffic flowed.
    pub(crate) direction: Option<Direction>,
    /// What moved in each.
    pub(crate) readings: Vec<&'a CountersDelta>,
}

/// What an end counted while the tunnel was loaded, by direction; where nothing was loaded, what it counted while it was
/// watched.
pub(crate) fn periods(evidence: &Evidence, end: End) -> Vec<Period<'_>> {
    let loaded: Vec<Period<'_>> = DIRECTIONS
        .into_iter()
        .map(|direction| Period {
            direction: Some(direction),
            readings: evidence
                .samples(direction, Via::Tunnel)
                .into_iter()
                .filter_map(|sample| moved(sample, end))
                .collect(),
        })
        .filter(|period| !period.readings.is_empty())
        .collect();
    if !loaded.is_empty() {
        return loaded;
    }
    let watched = evidence.passive.as_ref().and_then(|passive| match end {
        End::Here => Some(&passive.here),
        End::Far => passive.far.as_ref(),
    });
    watched
        .map(|watched| Period {
            direction: None,
            readings: watched.slices.iter().collect(),
        })
        .into_iter()
        .collect()
}

/// Packets lost in a period, and those that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Losses {
    pub(crate) lost: u64,
    pub(crate) of: u64,
}

/// The losses of a period, where they are too many.
pub(crate) fn too_many(
    period: &Period<'_>,
    lost: impl Fn(&CountersDelta) -> u64,
    of: impl Fn(&CountersDelta) -> u64,
) -> Option<Losses> {
    more_than_one_in(TOLERATED_ONE_IN, period, lost, of)
}

/// Are so many lost packets of so many too many?
pub(crate) fn are_many(lost: u64, of: u64) -> bool {
    lost > TOLERATED.max(of / TOLERATED_ONE_IN)
}

/// As [`too_many`], with another share that is tolerated.
pub(crate) fn more_than_one_in(
    tolerated_one_in: u64,
    period: &Period<'_>,
    lost: impl Fn(&CountersDelta) -> u64,
    of: impl Fn(&CountersDelta) -> u64,
) -> Option<Losses> {
    let mut losses = Losses { lost: 0, of: 0 };
    let mut hit = 0;
    for reading in &period.readings {
        let lost = lost(reading);
        hit += usize::from(lost > 0);
        losses.lost = losses.lost.saturating_add(lost);
        losses.of = losses.of.saturating_add(of(reading));
    }
    let tolerated = TOLERATED.max(losses.of / tolerated_one_in);
    (hit >= FEWEST_READINGS && losses.lost > tolerated).then_some(losses)
}

/// How bad losses in these directions are.
pub(crate) fn severity(evidence: &Evidence, directions: &[Direction]) -> Severity {
    if directions
        .iter()
        .any(|direction| evidence.below(*direction, 0.5) == Some(true))
    {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

/// Links that the tunnel's packets pass at an end: its own, and those of its outer packets. Where this tunnel's way is not
/// known, those of all tunnels; where theirs isn't either, every one but the loopback.
pub(crate) fn on_the_way<'a>(
    evidence: &'a Evidence,
    end: End,
    reading: &'a CountersDelta,
) -> Vec<&'a str> {
    let own = outer_links(evidence, end);
    let outer: Vec<&str> = if own.is_empty() {
        let facts = evidence.facts(end).into_iter();
        facts.flat_map(outer_names).collect()
    } else {
        own.iter().map(|link| link.name.as_str()).collect()
    };
    let tunnel = evidence.tunnel(end).map(|tunnel| tunnel.name.as_str());
    if outer.is_empty() {
        return reading
            .links
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "lo")
            .collect();
    }
    let mut names: Vec<&str> = outer.into_iter().chain(tunnel).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A sysctl that is a number; `None` where it could not be read, as those of the whole host in a network namespace.
pub(crate) fn sysctl(facts: &Facts, name: &str) -> Option<u64> {
    facts.sysctls.get(name)?.value()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::CountersDelta;

    use super::on_the_way;
    use crate::End;
    use crate::cards::tests::two_tunnels;

    #[test]
    fn what_another_tunnels_link_loses_is_no_loss_of_this_one() {
        let mut evidence = two_tunnels();
        let reading = CountersDelta::default();
        let tunnel = evidence.interface.clone();
        let mut own = ["bond0", "eth0", tunnel.as_str()];
        own.sort_unstable();
        assert_eq!(on_the_way(&evidence, End::Here, &reading), own);
        // Without a known way any of them may be it.
        evidence.here.routes.pop();
        let all = on_the_way(&evidence, End::Here, &reading);
        assert!(all.contains(&"eth1"), "{all:?}");
    }
}
