//! `conntrack-full`: the connection tracking table has no room for new connections.
//!
//! The kernel compares the entries of each network namespace with one limit for all (`nf_conntrack_max`). Beyond it a new
//! connection takes the place of one without replies (`early_drop`), or its first packet is dropped (`drop`).

use std::iter;

use serde_json::json;
use wirespeed_facts::ConntrackTable;
use wirespeed_settings::{Setting, Value};
use wirespeed_words::say;

use crate::finding::{Check, Found, Outcome, command, line, percent, remedy_of, typed};
use crate::readings::{counted, fullest_conntrack, readings};
use crate::view::{DIRECTIONS, ENDS};
use crate::{Change, End, Evidence, Goal, Remedy, Severity, losses};

pub(super) const CODE: &str = "conntrack-full";

pub(super) const CHECK: Check = Check::new(CODE, || say!("conntrack-full-title"), run);

/// A table this full is about to refuse. The kernel itself begins to clear out at 95 %.
const NEARLY_FULL: f64 = 0.9;
/// What an entry takes, bytes (`nf_conntrack` in /proc/slabinfo, with its part of the hash table).
const BYTES_OF_AN_ENTRY: u64 = 350;
/// What every kernel shows in the host's first network namespace alone.
const HOSTS_OWN: &str = "net.core.netdev_max_backlog";
/// Most room to propose.
const MOST_ROOM: u64 = 1 << 24;
/// How long a silent TCP connection is remembered, seconds, and how long is enough for most.
const ESTABLISHED: &str = "net.netfilter.nf_conntrack_tcp_timeout_established";
const SHORTER: u64 = 3600;
const DAY: u64 = 86_400;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        if let Some((found, costs)) = found(evidence, end) {
            outcome.list(costs).push(found);
        }
    }
    outcome
}

/// And may it be why a load of ours carries little? One that moves has its entry, and is no slower for how many others have
/// theirs: only one that stalls may be without.
fn found(evidence: &Evidence, end: End) -> Option<(Found, bool)> {
    let table = fullest_conntrack(evidence, end)?;
    let fill = table.fill()?;
    let readings = readings(evidence, end);
    let count = |name: &str| counted(&readings, &format!("Conntrack.{name}"));
    let (refused, displaced) = (count("drop"), count("early_drop"));
    // `drop` alone may be a helper's doing; only a full table displaces.
    if fill < NEARLY_FULL && displaced == 0 {
        return None;
    }
    let place = evidence.name(end);
    let lines = vec![
        line(
            say!("conntrack-full-line-table"),
            place,
            table.room,
            table.entries,
            "connections",
        ),
        line(
            say!("conntrack-full-line-refused"),
            place,
            0,
            refused,
            "packets",
        ),
        line(
            say!("conntrack-full-line-displaced"),
            place,
            0,
            displaced,
            "connections",
        ),
        line(
            say!("conntrack-full-line-failed"),
            place,
            0,
            count("insert_failed"),
            "connections",
        ),
    ];
    let (severity, confidence, effect) = if refused > 0 {
        (Severity::Critical, 0.95, 0.9)
    } else if displaced > 0 {
        (Severity::Warning, 0.9, 0.6)
    } else {
        (Severity::Warning, 0.6, 0.3)
    };
    let found = Found {
        severity,
        confidence,
        effect,
        host: place.to_owned(),
        direction: None,
        evidence: lines,
        because: because(place, &table, fill, refused, displaced),
        remedies: more_room(evidence, end, table.room)
            .into_iter()
            .chain(shorter_memory(evidence, end))
            .collect(),
        refused: Vec::new(),
    };
    let stalls = DIRECTIONS
        .into_iter()
        .any(|direction| evidence.stalled(direction));
    Some((found, stalls && (refused > 0 || displaced > 0)))
}

fn because(place: &str, table: &ConntrackTable, fill: f64, refused: u64, displaced: u64) -> String {
    let fill = percent(fill);
    let ConntrackTable { entries, room } = *table;
    if refused > 0 {
        say!(
            "conntrack-full-because-refused",
            host = place,
            fill = fill,
            entries = entries,
            room = room,
            refused = refused
        )
    } else if displaced > 0 {
        say!(
            "conntrack-full-because-displaced",
            host = place,
            fill = fill,
            entries = entries,
            room = room,
            displaced = displaced
        )
    } else {
        say!(
            "conntrack-full-because",
            host = place,
            fill = fill,
            entries = entries,
            room = room
        )
    }
}

fn more_room(evidence: &Evidence, end: End, room: u64) -> Option<Remedy> {
    let wanted = room.saturating_mul(2).min(MOST_ROOM).max(room);
    let sysctl = |name: &str, value: u64| {
        let before = evidence
            .facts(end)
            .and_then(|facts| facts.sysctls.get(name)?.value().cloned());
        let change = Change {
            end,
            setting: Setting::Sysctl {
                name: name.to_owned(),
            },
            value: json!(value.to_string()),
        };
        before.map(|before| (change, json!(before)))
    };
    let buckets = evidence
        .facts(end)
        .and_then(|facts| losses::sysctl(facts, "net.netfilter.nf_conntrack_buckets"));
    // A chain of four on average, as the kernel itself laid its tables out before Linux 5.15.
    let longer = buckets.filter(|buckets| buckets.saturating_mul(4) < wanted);
    let limit = sysctl("net.netfilter.nf_conntrack_max", wanted)?;
    let buckets = longer.and_then(|_| sysctl("net.netfilter.nf_conntrack_buckets", wanted / 4));
    let changes: Vec<_> = iter::once(limit).chain(buckets).collect();
    let title = say!("conntrack-full-remedy-room", room = wanted);
    let risk = say!(
        "conntrack-full-risk-room",
        mebibytes = (wanted - room).saturating_mul(BYTES_OF_AN_ENTRY) >> 20
    );
    (wanted > room).then(|| {
        if in_a_namespace(evidence, end) {
            on_the_host(evidence, title, &changes, risk)
        } else {
            remedy_of(evidence, title, changes, Goal::Goodput, risk)
        }
    })
}

/// Does the kernel show this end less than the host's first network namespace?
fn in_a_namespace(evidence: &Evidence, end: End) -> bool {
    evidence
        .facts(end)
        .and_then(|facts| facts.sysctls.get(HOSTS_OWN))
        .is_some_and(|value| value.value().is_none())
}

/// The limit and its hash table can be read in other network namespaces, and be changed by nobody there
/// (`nf_conntrack_standalone_init_sysctl`): nothing for an experiment, and a line to type on the host.
fn on_the_host(
    evidence: &Evidence,
    title: String,
    changes: &[(Change, Value)],
    risk: String,
) -> Remedy {
    let note = format!("  # {}", say!("conntrack-full-namespace"));
    let (commands, undo) = typed(evidence, changes, &note);
    Remedy {
        title,
        commands,
        changes: Vec::new(),
        goal: Goal::Goodput,
        persistence: say!("conntrack-full-persistence-host"),
        risk,
        undo,
    }
}

/// `None` where they are forgotten as soon already, or nobody knows when.
fn shorter_memory(evidence: &Evidence, end: End) -> Option<Remedy> {
    let now = losses::sysctl(evidence.facts(end)?, ESTABLISHED).filter(|now| *now > SHORTER)?;
    let title = match now {
        DAY.. => say!("conntrack-full-remedy-days", days = now / DAY),
        _ => say!("conntrack-full-remedy-minutes", minutes = now / 60),
    };
    Some(Remedy {
        title,
        changes: Vec::new(),
        commands: vec![
            command(
                evidence,
                end,
                "conntrack -L | awk '{print $1, $4}' | sort | uniq -c  # what fills it?",
            ),
            command(evidence, end, format!("sysctl -w {ESTABLISHED}={SHORTER}")),
        ],
        goal: Goal::Goodput,
        persistence: say!(
            "conntrack-full-persistence-memory",
            setting = format!("{ESTABLISHED} = {SHORTER}")
        ),
        risk: say!("conntrack-full-risk-memory"),
        undo: command(evidence, end, format!("sysctl -w {ESTABLISHED}={now}")),
    })
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{ConntrackTable, Known};
    use wirespeed_measure::{Direction, Via};

    use super::*;
    use crate::testing::{at, each_sample, facts_of, healthy, nothing, only_finding};

    fn filled(entries: u64, counter: &str, count: u64) -> Evidence {
        let mut evidence = healthy();
        let facts = facts_of(&mut evidence, End::Far);
        for (name, value) in [("max", "1000"), ("buckets", "1000")] {
            facts.sysctls.insert(
                format!("net.netfilter.nf_conntrack_{name}"),
                Known::Value(value.to_owned()),
            );
        }
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            delta.conntrack = Some(ConntrackTable {
                entries,
                room: 1000,
            });
            delta
                .protocols
                .insert(format!("Conntrack.{counter}"), count);
        });
        evidence
    }

    #[test]
    fn nine_tenths_are_nearly_full() {
        nothing(&filled(899, "drop", 5));
        let finding = only_finding(&filled(900, "found", 5), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Warning, "server")
        );
        assert_eq!(finding.remedies[0].changes.len(), 1);
        assert_eq!(finding.remedies[0].changes[0].value, "2000");
        assert!(finding.remedies[0].undo.contains("nf_conntrack_max='1000'"));
    }

    #[test]
    fn in_a_container_it_is_for_the_host_to_change() {
        let mut evidence = filled(1000, "found", 1);
        let facts = facts_of(&mut evidence, End::Far);
        for (name, value) in [
            (HOSTS_OWN, Known::because("not shown here")),
            (
                "net.netfilter.nf_conntrack_buckets",
                Known::Value("256".to_owned()),
            ),
        ] {
            facts.sysctls.insert(name.to_owned(), value);
        }
        let remedy = &only_finding(&evidence, CODE).remedies[0];
        assert_eq!(remedy.changes, []);
        let host = "on the host itself, not in its container  # on server";
        assert_eq!(
            remedy.commands,
            [
                format!("sysctl -w net.netfilter.nf_conntrack_max='2000'  # {host}"),
                format!("sysctl -w net.netfilter.nf_conntrack_buckets='500'  # {host}"),
            ]
        );
        let undo = format!("sysctl -w net.netfilter.nf_conntrack_max='1000'  # {host}\n");
        assert!(remedy.undo.starts_with(&undo), "{}", remedy.undo);
        assert!(remedy.persistence.ends_with("of the host"));
        let own = Known::Value("1000".to_owned());
        facts_of(&mut evidence, End::Far)
            .sysctls
            .insert(HOSTS_OWN.to_owned(), own);
        assert_eq!(only_finding(&evidence, CODE).remedies[0].changes.len(), 2);
    }

    #[test]
    fn dropped_packets_make_it_critical() {
        assert_eq!(
            only_finding(&filled(1000, "drop", 1), CODE).severity,
            Severity::Critical
        );
        let displaced = only_finding(&filled(700, "early_drop", 1), CODE);
        assert_eq!(displaced.severity, Severity::Warning);
    }

    #[test]
    fn a_table_without_limit_or_a_kernel_without_tracking_is_no_matter() {
        let mut evidence = filled(900, "found", 1);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).conntrack = Some(ConntrackTable {
                entries: 900,
                room: 0,
            });
        });
        nothing(&evidence);
    }

    #[test]
    fn chains_of_the_hash_table_are_kept_short() {
        let mut evidence = filled(1000, "found", 1);
        facts_of(&mut evidence, End::Far).sysctls.insert(
            "net.netfilter.nf_conntrack_buckets".to_owned(),
            Known::Value("256".to_owned()),
        );
        let changes = &only_finding(&evidence, CODE).remedies[0].changes;
        assert_eq!(changes[1].value, "500");
    }

    fn forgetting(seconds: &str) -> Vec<Remedy> {
        let mut evidence = filled(1000, "found", 1);
        facts_of(&mut evidence, End::Far)
            .sysctls
            .insert(ESTABLISHED.to_owned(), Known::Value(seconds.to_owned()));
        only_finding(&evidence, CODE).remedies
    }

    #[test]
    fn connections_are_forgotten_sooner_never_later() {
        assert_eq!(forgetting("600").len(), 1);
        assert_eq!(forgetting("3600").len(), 1);
        let days = &forgetting("432000")[1];
        assert!(days.title.ends_with("instead of 5 days"), "{}", days.title);
        assert!(days.undo.contains("established=432000"));
        assert!(forgetting("7200")[1].title.ends_with("120 minutes"));
        // Where it is not known, as above, nothing is proposed.
        assert_eq!(
            only_finding(&filled(900, "found", 5), CODE).remedies.len(),
            1
        );
    }

    #[test]
    fn there_is_a_most_room() {
        let mut evidence = filled(1000, "found", 1);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).conntrack = Some(ConntrackTable {
                entries: MOST_ROOM,
                room: MOST_ROOM,
            });
        });
        assert_eq!(only_finding(&evidence, CODE).remedies, []);
        let mut unreadable = filled(1000, "found", 1);
        facts_of(&mut unreadable, End::Far)
            .sysctls
            .remove("net.netfilter.nf_conntrack_max");
        assert_eq!(only_finding(&unreadable, CODE).remedies, []);
    }
}
