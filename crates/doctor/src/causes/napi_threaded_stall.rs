//! `napi-threaded-stall`: the kernel's WireGuard has stopped to hand a peer's packets on, for good.
//!
//! With threaded NAPI a wake-up may get lost under load; then the peer's receive queue stays full, and whatever comes in for
//! it is dropped after it was decrypted or before. Handshakes are not queued behind the peer's packets: they go on, so the
//! peer has a session and sends. Its counter of what it sent moves, ours of what we received from it does not.
//!
//! No load gets through such a tunnel. So it is known from what both ends counted while the tunnel was probed or watched.

use wirespeed_facts::{CountersDelta, Host};
use wirespeed_settings::{Setting, shell_word};
use wirespeed_words::say;

use super::old_kernel::{threaded, threaded_unknown};
use crate::finding::{Check, Found, Outcome, command, line};
use crate::versions::{Has, Kernel, KernelFault, kernel_faults};
use crate::view::ENDS;
use crate::{Change, End, Evidence, Goal, Remedy, Severity, watched};

pub(super) const CODE: &str = "napi-threaded-stall";

pub(super) const CHECK: Check = Check::new(CODE, || say!("napi-threaded-stall-title"), run);

/// Bytes the peer must have sent beside handshakes: fifty packets of nothing but headers. Fewer may be on their way.
const FEWEST_SENT: u64 = 50 * 32;
/// Bytes of an initiation and of its response (`messages.h`), which count as received, too; each end sends one …
const HANDSHAKE: u64 = 148 + 92;
/// … in so many seconds at most (`REKEY_TIMEOUT`).
const HANDSHAKE_EVERY: f64 = 5.0;
/// Slices of a watch in which the peer must have sent: the two ends' begin and end not quite at once, so that what one
/// counts at an edge is missing at the other.
const FEWEST_SLICES: usize = 3;
/// Linux that has threads by default, and no such stall that anybody knows of.
const SINCE: (u32, u32) = (6, 16);
/// Id of the fault in the table of kernels.
const FAULT: &str = "threaded-napi-stall";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.found.extend(found(evidence, end));
        outcome.not_known.extend(unknown(evidence, end));
    }
    outcome
}

/// Why it is not known that threads are on, where nothing of what the peer sent came out here.
fn unknown(evidence: &Evidence, end: End) -> Option<String> {
    let because = threaded_unknown(evidence, end)?;
    let host = &evidence.facts(end)?.host;
    (!bears_threads(host) && stands_still(evidence, end).is_some()).then(|| {
        say!(
            "napi-threaded-stall-unknown",
            place = evidence.interface_at(end),
            because = because
        )
    })
}

/// Is it a kernel with threads by default and without the fault?
fn bears_threads(host: &Host) -> bool {
    let free = fault().is_none_or(|fault| fault.of(host) == Has::No);
    free && Kernel::of(host).is_some_and(|kernel| kernel.at_least(SINCE.0, SINCE.1))
}

/// The row of the table.
pub(super) fn fault() -> Option<&'static KernelFault> {
    kernel_faults().iter().find(|fault| fault.id == FAULT)
}

/// A time in which the peer sent and nothing came out here.
struct Hit {
    /// What the peer sent into the tunnel, bytes.
    sent: u64,
    /// What was received from it here: handshakes.
    received: u64,
    /// What the peer received from here.
    back: u64,
    seconds: f64,
}

fn other(end: End) -> End {
    match end {
        End::Here => End::Far,
        End::Far => End::Here,
    }
}

/// What both ends, this one first, counted over the same time without a load through the tunnel.
fn windows(evidence: &Evidence, end: End) -> Vec<(&CountersDelta, &CountersDelta)> {
    let probing = |end| match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    };
    let probed = probing(end).zip(probing(other(end)));
    let sends_on = |slices: &[CountersDelta]| {
        let sent = slices
            .iter()
            .filter(|slice| to_us(evidence, end, slice).is_some_and(|(sent, _)| sent > 0));
        sent.count() >= FEWEST_SLICES
    };
    let watched = watched::at(evidence, end)
        .zip(watched::at(evidence, other(end)))
        .filter(|(_, there)| sends_on(&there.slices))
        .map(|(here, there)| (&here.counters, &there.counters));
    probed.into_iter().chain(watched).collect()
}

/// Bytes the other end sent to this one and received from it; `None` where that is not known.
fn to_us(evidence: &Evidence, end: End, there: &CountersDelta) -> Option<(u64, u64)> {
    let we = evidence.peer_at(other(end))?;
    counted(there, &we.public_key).map(|(received, sent)| (sent, received))
}

/// Bytes received from a peer and sent to it. Rows that did not move are left out of a delta.
fn counted(delta: &CountersDelta, peer: &str) -> Option<(u64, u64)> {
    let known = delta
        .unreliable
        .iter()
        .all(|name| name.strip_prefix("peers.") != Some(peer));
    known.then(|| {
        let moved = delta.peers.get(peer);
        moved.map_or((0, 0), |moved| (moved.rx_bytes, moved.tx_bytes))
    })
}

/// What handshakes may have added to a peer's counters in so many seconds, bytes.
fn handshakes(seconds: f64) -> u64 {
    let begun = (seconds.max(0.0) / HANDSHAKE_EVERY) as u64;
    HANDSHAKE.saturating_mul(begun.saturating_add(1))
}

fn hit(evidence: &Evidence, end: End, own: &CountersDelta, there: &CountersDelta) -> Option<Hit> {
    let (sent, back) = to_us(evidence, end, there)?;
    let (received, _) = counted(own, &evidence.peer_at(end)?.public_key)?;
    let handshakes = handshakes(own.seconds.max(there.seconds));
    // Packets with a source outside allowed IPs arrive and count for no peer either.
    let not_allowed = own
        .links
        .get(&evidence.tunnel(end)?.name)
        .is_some_and(|link| link.rx_errors > 0 || link.rx_frame_errors > 0);
    // Only with a session does the peer send more than handshakes. One that hears us, or whose handshakes are heard here, has
    // a road to us that is open: not one that has just begun to swallow everything.
    let open = back > handshakes || received > 0;
    let stands_still = received <= handshakes && sent >= handshakes.saturating_add(FEWEST_SENT);
    (stands_still && open && !not_allowed).then_some(Hit {
        sent,
        received,
        back,
        seconds: own.seconds,
    })
}

/// The first time in which the peer sent and nothing came out at this end.
fn stands_still(evidence: &Evidence, end: End) -> Option<Hit> {
    windows(evidence, end)
        .into_iter()
        .find_map(|(own, there)| hit(evidence, end, own, there))
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    if threaded(evidence, end) != Some(true) {
        return None;
    }
    let tunnel = evidence.tunnel(end)?;
    let host = &evidence.facts(end)?.host;
    let (severity, confidence, known) = match fault().map(|fault| fault.of(host)) {
        Some(Has::Yes) => (Severity::Critical, 0.95, "yes"),
        Some(Has::Perhaps) => (Severity::Critical, 0.85, "perhaps"),
        _ if bears_threads(host) => return None,
        _ => (Severity::Warning, 0.6, "no"),
    };
    let Hit {
        sent,
        received,
        back,
        seconds,
    } = stands_still(evidence, end)?;
    let place = evidence.interface_at(end);
    let from = evidence.name(other(end));
    let mut lines = vec![
        line("/sys/class/net/NAME/threaded", &place, (), 1, ""),
        line(
            say!(
                "napi-threaded-stall-line-sent",
                peer = from,
                seconds = seconds
            ),
            &place,
            sent,
            received,
            "bytes",
        ),
        line(
            say!("napi-threaded-stall-line-back", peer = from),
            evidence.interface_at(other(end)),
            (),
            back,
            "bytes",
        ),
        line(
            say!("napi-threaded-stall-line-kernel"),
            evidence.name(end),
            (),
            host.kernel.clone(),
            "",
        ),
    ];
    if let Some(fault) = fault() {
        let public = say!("napi-threaded-stall-public");
        lines.push(line(
            say!("napi-threaded-stall-line-kernels"),
            &public,
            (),
            fault.ranges(),
            "",
        ));
        lines.push(line(
            say!("napi-threaded-stall-line-source"),
            public,
            (),
            fault.sources.join("; "),
            "",
        ));
    }
    Some(Found {
        severity,
        confidence,
        effect: 1.0,
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because: say!(
            "napi-threaded-stall-because",
            peer = from,
            sent = sent,
            received = received,
            place = place,
            known = known
        ),
        remedies: vec![remedy(evidence, end, &tunnel.name)],
        refused: Vec::new(),
    })
}

fn remedy(evidence: &Evidence, end: End, interface: &str) -> Remedy {
    let setting = Setting::ThreadedNapi {
        interface: interface.to_owned(),
    };
    let off = Change {
        end,
        setting,
        value: false.into(),
    };
    let again = format!(
        "wg-quick down {0} && wg-quick up {0}",
        shell_word(interface)
    );
    let commands = [again]
        .into_iter()
        .chain(off.setting.shell(&off.value))
        .map(|text| command(evidence, end, text))
        .collect();
    Remedy {
        title: say!("napi-threaded-stall-remedy"),
        // A peer that is stuck stays so until the interface is made anew, which is no setting to try.
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: off.setting.persistence(&off.value),
        risk: say!("napi-threaded-stall-risk"),
        undo: off
            .setting
            .shell(&true.into())
            .into_iter()
            .map(|text| command(evidence, end, text))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Implementation, Known, LinkCounters, LinkDetail, PeerCounters};
    use wirespeed_words::{Language, within};

    use super::*;
    use crate::testing::{codes, facts_of, healthy, not_checked, tunnel_of, watched};
    use crate::{Diagnosis, judge};

    /// A server with the kernel's WireGuard and threads.
    fn with_threads(mut evidence: Evidence, release: &str) -> Evidence {
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = release.to_owned();
        facts.links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(true),
            ..LinkDetail::default()
        });
        evidence
    }

    fn moved(key: &str, rx_bytes: u64, tx_bytes: u64) -> CountersDelta {
        let moved = PeerCounters { rx_bytes, tx_bytes };
        CountersDelta {
            seconds: 9.0,
            peers: [(key.to_owned(), moved)].into(),
            ..CountersDelta::default()
        }
    }

    /// Nothing gets through, so there are no loads; while it was probed the client sent so much, and this came out there.
    fn stalled(release: &str, sent: u64, received: u64) -> Evidence {
        let mut evidence = with_threads(healthy(), release);
        evidence.comparisons.clear();
        evidence.probing_here = Some(moved("far-key", 9000, sent));
        evidence.probing_far = Some(moved("here-key", received, 9000));
        evidence
    }

    fn found_in(diagnosis: &Diagnosis) -> bool {
        diagnosis
            .findings
            .iter()
            .any(|finding| finding.code == CODE)
    }

    #[test]
    fn what_is_sent_and_never_comes_out_is_a_stall() {
        let diagnosis = judge(&stalled("6.1.150", 50_000, 0));
        assert_eq!(codes(&diagnosis), [CODE]);
        let finding = &diagnosis.findings[0];
        assert_eq!(
            (finding.severity, finding.confidence, finding.host.as_str()),
            (Severity::Critical, 0.95, "server")
        );
        assert!(finding.remedies[0].commands[0].starts_with("wg-quick down wg1"));
        assert!(
            finding.remedies[0].commands[1].starts_with("echo 0 > /sys/class/net/wg1/threaded")
        );
        let named: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.code == "old-kernel")
            .map(|finding| finding.consequence_of.as_deref())
            .collect();
        assert_eq!(named, [Some(CODE)]);
    }

    #[test]
    fn what_came_out_and_what_is_known_of_the_kernel_is_said_in_both_languages() {
        let because = |release: &str, received: u64| {
            judge(&stalled(release, 50_000, received)).findings[0]
                .because
                .clone()
        };
        assert_eq!(
            because("6.1.150", 0),
            "client has a session and sent 50\u{a0}000 bytes through it, and not one came out of wg1 on server: with threaded NAPI the kernel has lost the wake-up for this peer (its kernel is known for it)."
        );
        let handshakes = because("6.1.0-38-amd64", 148);
        assert!(handshakes.contains("nothing but handshakes came out"));
        assert!(handshakes.contains("(its kernel may be one of those known for it)"));
        assert!(because("6.8.12", 0).contains("(its kernel is not among those known for it)"));
        let french = within(Language::French, || because("6.8.12", 148)).replace('\u{202f}', "_");
        assert_eq!(
            french,
            "client a une session et y a envoyé 50_000_octets, et rien d’autre que des handshakes n’est ressorti de wg1 sur server_: avec NAPI en threads, le noyau a perdu le réveil pour ce pair (son noyau n’est pas de ceux connus pour cela)."
        );
    }

    #[test]
    fn handshakes_go_on_and_are_no_data() {
        // Two handshakes in nine seconds, both ends'; and what the client sends beside its own.
        assert!(found_in(&judge(&stalled("6.1.150", 2080, 480))));
        assert!(!found_in(&judge(&stalled("6.1.150", 2079, 480))));
        assert!(!found_in(&judge(&stalled("6.1.150", 50_000, 481))));
    }

    #[test]
    fn a_road_that_swallows_everything_is_something_else() {
        let mut evidence = stalled("6.1.150", 50_000, 0);
        evidence.probing_here = Some(moved("far-key", 480, 50_000));
        assert!(!found_in(&judge(&evidence)), "nothing comes back either");
        evidence.probing_far = Some(moved("here-key", 148, 9000));
        assert!(found_in(&judge(&evidence)), "but a handshake came through");
        evidence.probing_here = None;
        assert!(!found_in(&judge(&evidence)), "nobody knows what was sent");
    }

    #[test]
    fn sources_not_allowed_or_another_interface_are_something_else() {
        let mut refused = stalled("6.1.150", 50_000, 0);
        let link = LinkCounters {
            rx_frame_errors: 1,
            ..LinkCounters::default()
        };
        let delta = refused.probing_far.as_mut().unwrap();
        delta.links.insert("wg1".to_owned(), link);
        assert!(!found_in(&judge(&refused)));
        let mut anew = stalled("6.1.150", 50_000, 0);
        let delta = anew.probing_far.as_mut().unwrap();
        delta.unreliable.push("peers.here-key".to_owned());
        assert!(!found_in(&judge(&anew)));
    }

    #[test]
    fn a_watch_tells_as_well_where_the_peer_goes_on_sending() {
        let mut evidence = with_threads(watched(), "6.1.150");
        let watch = evidence.passive.as_mut().unwrap();
        watch.here.counters = moved("far-key", 9000, 50_000);
        watch.here.slices = vec![moved("far-key", 3000, 15_000); 3];
        let there = watch.far.as_mut().unwrap();
        there.counters = moved("here-key", 148, 9000);
        assert!(found_in(&judge(&evidence)));
        let watch = evidence.passive.as_mut().unwrap();
        watch.here.slices[0] = CountersDelta::default();
        assert!(!found_in(&judge(&evidence)), "a burst at the edge");
    }

    #[test]
    fn another_kernel_is_less_certain_and_a_new_one_is_not_blamed() {
        let first = |release: &str| {
            let first = judge(&stalled(release, 50_000, 0)).findings[0].clone();
            (first.code, first.severity, first.confidence)
        };
        assert_eq!(
            first("6.1.0-38-amd64"),
            (CODE.to_owned(), Severity::Critical, 0.85)
        );
        assert_eq!(first("6.8.12"), (CODE.to_owned(), Severity::Warning, 0.6));
        assert!(!found_in(&judge(&stalled("6.16.0", 50_000, 0))));
    }

    #[test]
    fn threads_that_nobody_knows_of_are_said_where_nothing_comes_out() {
        let unreadable = |mut evidence: Evidence| {
            facts_of(&mut evidence, End::Far).links[0].detail = Known::Value(LinkDetail::default());
            evidence
        };
        let stalls = || stalled("6.1.150", 50_000, 0);
        assert!(!not_checked(&stalls(), CODE));
        let unknown = unreadable(stalls());
        assert!(not_checked(&unknown, CODE) && !found_in(&judge(&unknown)));
        let comes_out = stalled("6.1.150", 50_000, 40_000);
        assert!(!not_checked(&unreadable(comes_out), CODE));
        let new = stalled("6.16.0", 50_000, 0);
        assert!(!not_checked(&unreadable(new), CODE));
        let mut daemon = unreadable(stalls());
        tunnel_of(&mut daemon, End::Far).implementation =
            tunnel_of(&mut healthy(), End::Far).implementation.clone();
        assert!(!not_checked(&daemon, CODE));
    }

    #[test]
    fn without_threads_or_in_a_daemon_it_is_something_else() {
        let mut evidence = stalled("6.1.150", 50_000, 0);
        facts_of(&mut evidence, End::Far).links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(false),
            ..LinkDetail::default()
        });
        assert!(!found_in(&judge(&evidence)));
        tunnel_of(&mut evidence, End::Far).implementation =
            tunnel_of(&mut healthy(), End::Here).implementation.clone();
        assert!(!found_in(&judge(&evidence)));
        assert!(!found_in(&judge(&with_threads(healthy(), "6.1.150"))));
    }
}
