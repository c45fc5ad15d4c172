//! `accept-queue`: connections are made faster than a program accepts them, and its queue overflows.
//!
//! A listening socket queues at most `min(backlog, somaxconn)` connections; the kernel drops what comes on top
//! (`TcpExt ListenOverflows`), and the client tries again after a second, or gives up.

use serde_json::json;
use wirespeed_facts::TcpListener;
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, line, remedy_of};
use crate::readings::{counted, readings};
use crate::view::{ENDS, on};
use crate::{Change, End, Evidence, Goal, Refusal, Remedy, Severity, losses};

pub(super) const CODE: &str = "accept-queue";

pub(super) const CHECK: Check = Check::new(CODE, || say!("accept-queue-title"), run);

/// Fewer are a program's start, or a moment in which it was busy.
const TOLERATED: u64 = 10;
/// Readings that show it, from which on it is no moment's work.
const LASTING: usize = 2;
/// A queue that is no longer the matter (the kernel's own default since Linux 5.4).
const LONG_QUEUE: u64 = 4096;

const SOMAXCONN: &str = "net.core.somaxconn";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.of_no_load.extend(found(evidence, end));
    }
    outcome
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    let readings = readings(evidence, end);
    let overflows = counted(&readings, "TcpExt.ListenOverflows");
    if overflows <= TOLERATED {
        return None;
    }
    let facts = evidence.facts(end)?;
    let limit = losses::sysctl(facts, SOMAXCONN);
    let listeners = facts
        .connections
        .value()
        .map_or(&[][..], |connections| &connections.listeners);
    let full: Vec<&TcpListener> = listeners
        .iter()
        .filter(|listener| listener.backlog > 0 && listener.queue >= listener.backlog)
        .collect();
    let place = evidence.name(end);
    let mut lines = vec![
        line("TcpExt ListenOverflows", place, 0, overflows, "connections"),
        line(
            "TcpExt ListenDrops",
            place,
            0,
            counted(&readings, "TcpExt.ListenDrops"),
            "packets",
        ),
        line(SOMAXCONN, place, (), limit, "connections"),
    ];
    lines.extend(full.iter().map(|listener| {
        line(
            say!("accept-queue-line-queue", listener = name(listener)),
            place,
            listener.backlog,
            listener.queue,
            "connections",
        )
    }));
    let lasting = readings
        .iter()
        .filter(|delta| delta.protocols.get("TcpExt.ListenOverflows") > Some(&0))
        .count()
        >= LASTING;
    // Each is a client that waits for its next try.
    let (severity, confidence) = if lasting {
        (Severity::Warning, 0.8)
    } else {
        (Severity::Info, 0.6)
    };
    Some(Found {
        severity,
        confidence,
        effect: 0.2,
        host: place.to_owned(),
        direction: None,
        evidence: lines,
        because: match full.as_slice() {
            [one] => say!(
                "accept-queue-because-program",
                attempts = overflows,
                host = place,
                program = name(one)
            ),
            _ => say!("accept-queue-because", attempts = overflows, host = place),
        },
        remedies: remedies(evidence, end, limit, &full),
        refused: limit
            .filter(|limit| *limit >= LONG_QUEUE)
            .map(|limit| Refusal {
                remedy: say!("accept-queue-refused", host = place),
                why: say!("accept-queue-refused-why", limit = limit),
            })
            .into_iter()
            .collect(),
    })
}

fn name(listener: &TcpListener) -> String {
    match &listener.holder {
        Some(holder) => on(&holder.program, &listener.local.to_string()),
        None => listener.local.to_string(),
    }
}

fn remedies(
    evidence: &Evidence,
    end: End,
    limit: Option<u64>,
    full: &[&TcpListener],
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    // A backlog as long as the limit was cut by it: then the program may want more already.
    let short =
        |listener: &&TcpListener| limit.is_none_or(|limit| u64::from(listener.backlog) < limit);
    if full.is_empty() || full.iter().any(short) {
        remedies.push(Remedy {
            title: say!("accept-queue-remedy-program"),
            changes: Vec::new(),
            commands: Vec::new(),
            goal: Goal::Goodput,
            persistence: say!("accept-queue-persistence-program"),
            risk: say!("accept-queue-risk-program"),
            undo: say!("accept-queue-undo-program"),
        });
    }
    if let Some(limit) = limit.filter(|limit| *limit < LONG_QUEUE) {
        let change = Change {
            end,
            setting: Setting::Sysctl {
                name: SOMAXCONN.to_owned(),
            },
            value: json!(LONG_QUEUE.to_string()),
        };
        let mut remedy = remedy_of(
            evidence,
            say!("accept-queue-remedy-limit", queue = LONG_QUEUE),
            vec![(change, json!(limit.to_string()))],
            Goal::Goodput,
            say!("accept-queue-risk-limit"),
        );
        // Nothing for an experiment: no queue is longer before its program starts again, and throughput would not tell.
        remedy.changes.clear();
        remedies.push(remedy);
    }
    remedies
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Connections, Known};
    use wirespeed_measure::{Direction, Via};

    use super::*;
    use crate::testing::{at, each_sample, facts_of, healthy, nothing, only_finding};

    fn with_limit(limit: &str) -> Evidence {
        let mut evidence = healthy();
        facts_of(&mut evidence, End::Far)
            .sysctls
            .insert(SOMAXCONN.to_owned(), Known::Value(limit.to_owned()));
        evidence
    }

    /// So many at the far end while the probes ran, and none later.
    fn once(overflows: u64) -> Evidence {
        let mut evidence = with_limit("128");
        evidence.probing_far.get_or_insert_default().protocols =
            [("TcpExt.ListenOverflows".to_owned(), overflows)].into();
        evidence
    }

    /// So many at an end in each of five loads.
    fn in_each_load(mut evidence: Evidence, end: End, overflows: u64) -> Evidence {
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, end)
                .protocols
                .insert("TcpExt.ListenOverflows".to_owned(), overflows);
        });
        evidence
    }

    fn listens(evidence: &mut Evidence, queue: u32, backlog: u32) {
        facts_of(evidence, End::Far).connections = Known::Value(Connections {
            listeners: vec![TcpListener {
                local: "10.9.0.2:80".parse().unwrap(),
                inode: 5,
                queue,
                backlog,
                holder: None,
            }],
            ..Connections::default()
        });
    }

    #[test]
    fn ten_are_tolerated_and_a_moments_work_is_no_warning() {
        nothing(&once(10));
        let finding = only_finding(&once(11), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Info, "server")
        );
    }

    #[test]
    fn a_queue_that_overflows_again_and_again_is_a_warning() {
        nothing(&in_each_load(healthy(), End::Here, 2));
        let finding = only_finding(&in_each_load(healthy(), End::Here, 3), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "client")
        );
    }

    #[test]
    fn the_limit_is_raised_where_it_is_what_limits() {
        let mut full = in_each_load(with_limit("128"), End::Far, 10);
        let finding = only_finding(&full, CODE);
        assert!(
            finding.remedies[1].commands[0].contains("somaxconn")
                && finding.remedies[1].commands[0].contains("4096")
        );
        assert!(finding.remedies[1].changes.is_empty());
        assert!(finding.remedies[1].undo.contains("somaxconn='128'"));
        listens(&mut full, 129, 128);
        let finding = only_finding(&full, CODE);
        assert_eq!(
            finding.remedies.len(),
            1,
            "the program may want more already"
        );
        assert!(finding.because.contains("10.9.0.2:80"));
        assert!(finding.because.contains(" attempts to connect to server "));
    }

    #[test]
    fn a_large_limit_is_not_the_cause() {
        let mut evidence = in_each_load(with_limit("4096"), End::Far, 10);
        listens(&mut evidence, 6, 5);
        let finding = only_finding(&evidence, CODE);
        assert!(finding.refused[0].why.contains("4096"));
        assert!(finding.remedies[0].changes.is_empty());
        assert_eq!(finding.remedies.len(), 1);
    }
}
