//! Readings that went backwards, vanished or came from another time say nothing, whatever else stands beside them.
//!
//! A delta names what was unreliable in it and leaves it out. What another machine or a recording says is held to that
//! here, once, before any check looks at it.

use std::borrow::Cow;

use wirespeed_facts::{CoreTime, CountersDelta};

use crate::Evidence;

/// The evidence without what its deltas call unreliable themselves.
pub(crate) fn without_unreliable(evidence: &Evidence) -> Cow<'_, Evidence> {
    let mut looked_at = evidence.clone();
    let mut changed = false;
    for delta in deltas(&mut looked_at) {
        if !delta.unreliable.is_empty() {
            changed |= forget(delta);
        }
    }
    if changed {
        Cow::Owned(looked_at)
    } else {
        Cow::Borrowed(evidence)
    }
}

/// Every delta the checks may look at.
fn deltas(evidence: &mut Evidence) -> Vec<&mut CountersDelta> {
    let samples = evidence
        .comparisons
        .iter_mut()
        .flat_map(|comparison| &mut comparison.samples)
        .chain(
            evidence
                .congestion_trials
                .iter_mut()
                .flat_map(|trial| &mut trial.samples),
        )
        .chain(&mut evidence.soaks);
    let mut deltas: Vec<&mut CountersDelta> = samples
        .flat_map(|sample| [Some(&mut sample.here), sample.far.as_mut()])
        .flatten()
        .collect();
    deltas.extend(evidence.probing_here.as_mut());
    deltas.extend(evidence.probing_far.as_mut());
    if let Some(passive) = &mut evidence.passive {
        for watched in [Some(&mut passive.here), passive.far.as_mut()]
            .into_iter()
            .flatten()
        {
            deltas.push(&mut watched.counters);
            deltas.extend(&mut watched.slices);
        }
    }
    deltas
}

/// Takes away what is unreliable; was there anything?
fn forget(delta: &mut CountersDelta) -> bool {
    let before = delta.clone();
    for name in &before.unreliable {
        let (section, row) = name
            .split_once('.')
            .map_or((name.as_str(), None), |(section, row)| (section, Some(row)));
        match (section, row) {
            // Without a length of time no share and no rate can be told.
            ("at", None) => {
                *delta = CountersDelta {
                    unreliable: before.unreliable.clone(),
                    ..CountersDelta::default()
                };
                return before != *delta;
            }
            ("cores", None) => delta.cores.clear(),
            ("cores", Some(row)) => mend_core(delta, row),
            ("softnet", None) => delta.softnet.clear(),
            ("throttling", None) => delta.throttling = None,
            ("protocols", Some(row)) => forget_row(&mut delta.protocols, row),
            ("links", Some(row)) => forget_row(&mut delta.links, row),
            ("peers", Some(row)) => forget_row(&mut delta.peers, row),
            ("socket_drops", Some(row)) => forget_row(&mut delta.socket_drops, row),
            ("qdiscs", Some(row)) => forget_row(&mut delta.qdiscs, row),
            ("devices", Some(row)) => forget_row(&mut delta.devices, row),
            ("drivers", Some(row)) => forget_row(&mut delta.drivers, row),
            ("interrupts", Some(row)) => forget_row(&mut delta.interrupts, row),
            ("softirqs", Some(row)) => forget_row(&mut delta.softirqs, row),
            ("quotas", Some(row)) => forget_row(&mut delta.quotas, row),
            _ => {}
        }
    }
    before != *delta
}

fn forget_row<T>(rows: &mut std::collections::BTreeMap<String, T>, name: &str) {
    rows.remove(name);
}

/// The kernel's idle time may run backwards (proc(5) says so of iowait), and then a core would look busy from end to end:
/// what the other times leave of the interval was idle.
fn mend_core(delta: &mut CountersDelta, row: &str) {
    let Some((number, "idle")) = row.split_once('.') else {
        return;
    };
    let seconds = delta.seconds;
    if let Some(core) = number
        .parse::<usize>()
        .ok()
        .and_then(|number| delta.cores.get_mut(number))
    {
        let busy = core.user + core.system + core.irq + core.softirq + core.steal;
        *core = CoreTime {
            idle: (seconds - busy).max(core.idle).max(0.0),
            ..*core
        };
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use wirespeed_facts::{CoreTime, Counters};
    use wirespeed_measure::{Direction, Via};

    use super::without_unreliable;
    use crate::testing::{at, core, each_sample, healthy, nothing, only_finding, set_ratio};
    use crate::{End, Evidence};

    fn overflowing(unreliable: &str) -> Evidence {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.socket_drops.insert("77".to_owned(), 500);
            delta.unreliable = vec![unreliable.to_owned()];
        });
        evidence
    }

    #[test]
    fn what_went_backwards_says_nothing() {
        only_finding(&overflowing("socket_drops.78"), "socket-overflow");
        nothing(&overflowing("socket_drops.77"));
        nothing(&overflowing("at"));
    }

    #[test]
    fn reliable_evidence_is_left_as_it_is() {
        assert!(matches!(without_unreliable(&healthy()), Cow::Borrowed(_)));
        assert!(matches!(
            without_unreliable(&overflowing("peers.x")),
            Cow::Borrowed(_)
        ));
    }

    /// `iowait` that runs backwards by more than `idle` went on.
    #[test]
    fn idle_time_that_ran_backwards_makes_no_busy_core() {
        let reading = |at, idle, user| Counters {
            at,
            cores: vec![
                CoreTime {
                    user,
                    idle,
                    ..CoreTime::default()
                };
                4
            ],
            ..Counters::default()
        };
        let moved = reading(102.0, 49.0, 10.2).delta(&reading(100.0, 50.0, 10.0));
        assert!(moved.cores[0].busy_share() > 0.99, "{moved:?}");
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.7);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            *at(sample, End::Here) = moved.clone();
        });
        only_finding(&evidence, "unexplained");
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Here).unreliable.clear();
        });
        only_finding(&evidence, "cpu-saturated");
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Here).cores = vec![core(0.3); 4];
        });
        only_finding(&evidence, "unexplained");
    }
}
