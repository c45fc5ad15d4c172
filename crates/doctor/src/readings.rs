//! Everything an end counted from the first probe to the last load, whatever ran meanwhile.

use wirespeed_facts::{ConntrackTable, CountersDelta};

use crate::view::moved;
use crate::{End, Evidence};

/// All readings of an end.
pub(crate) fn readings(evidence: &Evidence, end: End) -> Vec<&CountersDelta> {
    let probing = match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    };
    let loads = evidence
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.samples)
        .chain(&evidence.soaks)
        .filter_map(|sample| moved(sample, end));
    let watched = evidence.passive.as_ref().and_then(|passive| match end {
        End::Here => Some(&passive.here.counters),
        End::Far => passive.far.as_ref().map(|watched| &watched.counters),
    });
    probing.into_iter().chain(loads).chain(watched).collect()
}

/// A counter of `/proc/net/snmp`, `netstat` or of connection tracking over all of them.
pub(crate) fn counted(readings: &[&CountersDelta], counter: &str) -> u64 {
    readings
        .iter()
        .filter_map(|delta| delta.protocols.get(counter))
        .fold(0, |sum, one| sum.saturating_add(*one))
}

/// The connection tracking table of an end when it was fullest.
pub(crate) fn fullest_conntrack(evidence: &Evidence, end: End) -> Option<ConntrackTable> {
    let before = evidence
        .facts(end)
        .and_then(|facts| facts.counters.conntrack);
    let fill = |table: &ConntrackTable| table.fill().unwrap_or_default();
    readings(evidence, end)
        .into_iter()
        .filter_map(|delta| delta.conntrack)
        .chain(before)
        .max_by(|one, other| fill(one).total_cmp(&fill(other)))
}
