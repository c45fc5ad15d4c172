//! `accept-queue`: connections are made faster than a program accepts them, and its queue overflows.
//!
//! A listening socket queues at most `min(backlog, somaxconn)` connections; the kernel drops what comes on top
//! (`TcpExt ListenOverflows`), and the client tries again after a second, or gives up.

use serde_json::json;
use wirespeed_facts::TcpListener;
use wirespeed_measure::{ExchangeSample, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, line, milliseconds, remedy_of};
use crate::readings::{counted, readings};
use crate::view::{ENDS, on, way};
use crate::{Change, End, Evidence, EvidenceLine, Goal, Refusal, Remedy, Severity, losses};

pub(super) const CODE: &str = "accept-queue";

pub(super) const CHECK: Check = Check::new(CODE, || say!("accept-queue-title"), run);

/// Fewer are a program's start, or a moment in which it was busy.
const TOLERATED: u64 = 10;
/// Share of the exchanges' connections that failed or had to be tried again from which they suffer.
const SHARE_THAT_HURTS: f64 = 0.01;
/// Readings that show it, from which on it is no moment's work.
const LASTING: usize = 2;
/// A connection that took this long was tried again: the first retry comes after a second (RFC 6298).
const TRIED_AGAIN: f64 = 1.0;
/// A queue that is no longer the matter (the kernel's own default since Linux 5.4).
const LONG_QUEUE: u64 = 4096;

const SOMAXCONN: &str = "net.core.somaxconn";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.found.extend(found(evidence, end));
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
    // Exchanges of ours go from here to there.
    let hurt = (end == End::Far).then(|| worst(evidence)).flatten();
    lines.extend(
        hurt.iter()
            .flat_map(|(sample, share)| exchange_lines(evidence, sample, *share)),
    );
    let lasting = readings
        .iter()
        .filter(|delta| delta.protocols.get("TcpExt.ListenOverflows") > Some(&0))
        .count()
        >= LASTING;
    let (severity, confidence, effect) = match &hurt {
        Some((_, share)) if *share >= SHARE_THAT_HURTS => (Severity::Warning, 0.9, share.max(0.3)),
        // Each is a client that waits for its next try; whether anybody noticed, only exchanges of ours tell.
        _ if lasting => (Severity::Warning, 0.8, 0.2),
        _ => (Severity::Info, 0.6, 0.2),
    };
    Some(Found {
        severity,
        confidence,
        effect,
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

/// The exchanges through the tunnel that suffered most, and the share of their connections that did.
fn worst(evidence: &Evidence) -> Option<(&ExchangeSample, f64)> {
    evidence
        .exchanges
        .iter()
        .flat_map(|exchanges| &exchanges.samples)
        .filter(|sample| sample.via == Via::Tunnel && sample.wanted > 0)
        .map(|sample| (sample, suffered(sample)))
        .max_by(|one, other| one.1.total_cmp(&other.1))
}

fn suffered(sample: &ExchangeSample) -> f64 {
    let failed = sample
        .failed
        .values()
        .fold(0_u64, |sum, one| sum.saturating_add(*one)) as f64
        / sample.wanted as f64;
    let late = sample.connect.map_or(0.0, |connect| {
        [
            (connect.p50, 0.5),
            (connect.p90, 0.1),
            (connect.p99, 0.01),
            (connect.p999, 0.001),
        ]
        .into_iter()
        .find(|(time, _)| *time >= TRIED_AGAIN)
        .map_or(0.0, |(_, share)| share)
    });
    failed.max(late).min(1.0)
}

fn exchange_lines(evidence: &Evidence, sample: &ExchangeSample, share: f64) -> Vec<EvidenceLine> {
    let path = way(&evidence.here_name, &evidence.far_name);
    let mut lines = vec![line(
        say!(
            "accept-queue-line-hurt",
            wanted = sample.wanted,
            time = milliseconds(TRIED_AGAIN)
        ),
        &path,
        (),
        share,
        "share",
    )];
    lines.extend(sample.connect.map(|connect| {
        line(
            say!("accept-queue-line-connect"),
            &path,
            connect.p50,
            connect.p99,
            "s",
        )
    }));
    lines.extend(sample.failed.iter().map(|(why, count)| {
        let what = say!("accept-queue-line-failed", why = why);
        line(what, &path, 0, *count, "connections")
    }));
    lines
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
    use std::collections::BTreeMap;

    use wirespeed_facts::{Connections, CountersDelta, Known};
    use wirespeed_measure::{Direction, ExchangeComparison, Percentiles};

    use super::*;
    use crate::testing::{at, each_sample, facts_of, healthy, nothing, only_finding};

    fn exchanges(overflows: u64, failed: u64, p99: f64, limit: &str) -> Evidence {
        let mut evidence = healthy();
        facts_of(&mut evidence, End::Far)
            .sysctls
            .insert(SOMAXCONN.to_owned(), Known::Value(limit.to_owned()));
        let far = CountersDelta {
            protocols: [("TcpExt.ListenOverflows".to_owned(), overflows)].into(),
            ..CountersDelta::default()
        };
        let connect = Percentiles {
            p50: 0.01,
            p90: 0.02,
            p99,
            p999: p99,
            max: p99,
        };
        evidence.exchanges.push(ExchangeComparison {
            at_once: 500,
            ratio: None,
            bare_unknown: None,
            remarks: Vec::new(),
            samples: vec![ExchangeSample {
                via: Via::Tunnel,
                at_once: 500,
                wanted: 1000,
                completed: 1000 - failed,
                failed: BTreeMap::from([("connect: timed out".to_owned(), failed)]),
                request: 100,
                response: 1000,
                seconds: 2.0,
                per_second: 500.0,
                connect: Some(connect),
                first_byte: None,
                total: None,
                here: CountersDelta::default(),
                far: Some(far),
            }],
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
    fn connections_that_are_tried_again_are_found() {
        nothing(&exchanges(10, 20, 2.0, "128"));
        let finding = only_finding(&exchanges(11, 0, 1.0, "128"), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "server")
        );
        assert_eq!(
            only_finding(&exchanges(11, 10, 0.1, "128"), CODE).severity,
            Severity::Warning
        );
        assert_eq!(
            only_finding(&exchanges(11, 9, 0.1, "128"), CODE).severity,
            Severity::Info
        );
    }

    #[test]
    fn a_queue_that_overflows_again_and_again_is_a_warning() {
        let mut evidence = healthy();
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Here)
                .protocols
                .insert("TcpExt.ListenOverflows".to_owned(), 3);
        });
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "client")
        );
    }

    #[test]
    fn the_limit_is_raised_where_it_is_what_limits() {
        let finding = only_finding(&exchanges(50, 0, 1.0, "128"), CODE);
        assert!(
            finding.remedies[1].commands[0].contains("somaxconn")
                && finding.remedies[1].commands[0].contains("4096")
        );
        assert!(finding.remedies[1].changes.is_empty());
        assert!(finding.remedies[1].undo.contains("somaxconn='128'"));
        let mut full = exchanges(50, 0, 1.0, "128");
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
        let mut evidence = exchanges(50, 0, 1.0, "4096");
        listens(&mut evidence, 6, 5);
        let finding = only_finding(&evidence, CODE);
        assert!(finding.refused[0].why.contains("4096"));
        assert!(finding.remedies[0].changes.is_empty());
        assert_eq!(finding.remedies.len(), 1);
    }
}
