//! `napi-threaded-stall`: the kernel's WireGuard has stopped to hand a peer's packets on, for good.
//!
//! With threaded NAPI a wake-up may get lost under load; then the peer's receive queue stays full, and whatever comes in for
//! it is dropped after it was decrypted or before. Outer packets arrive, the peer's counter of received bytes stands still.

use wirespeed_facts::CountersDelta;
use wirespeed_measure::Via;
use wirespeed_settings::{Setting, shell_word};

use super::old_kernel::threaded;
use crate::finding::{Check, Found, Outcome, command, line};
use crate::versions::{Has, KernelFault, kernel_faults};
use crate::view::{DIRECTIONS, ENDS, moved};
use crate::{Change, End, Evidence, Goal, Remedy, Severity};

pub(super) const CODE: &str = "napi-threaded-stall";

pub(super) const CHECK: Check = Check::new(
    CODE,
    "The kernel's tunnel receives nothing any more from a peer",
    run,
);

/// Fewer outer datagrams than this over all loads prove nothing: a handshake and its retries are some.
const FEWEST_ARRIVED: u64 = 50;
/// Loads in which nothing came out of the tunnel.
const FEWEST_LOADS: usize = 2;
/// Seconds after which a session is over (`REJECT_AFTER_TIME`).
const SESSION: f64 = 180.0;
/// Id of the fault in the table of kernels.
const FAULT: &str = "threaded-napi-stall";

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        outcome.found.extend(found(evidence, end));
    }
    outcome
}

/// The row of the table.
pub(super) fn fault() -> Option<&'static KernelFault> {
    kernel_faults().iter().find(|fault| fault.id == FAULT)
}

fn found(evidence: &Evidence, end: End) -> Option<Found> {
    if threaded(evidence, end) != Some(true) {
        return None;
    }
    let tunnel = evidence.tunnel(end)?;
    let peer = evidence.peer_at(end)?;
    let loads: Vec<&CountersDelta> = DIRECTIONS
        .into_iter()
        .filter(|direction| evidence.stalled(*direction))
        .flat_map(|direction| evidence.samples(direction, Via::Tunnel))
        .filter(|sample| sample.stalled)
        .filter_map(|sample| moved(sample, end))
        .collect();
    // Rows that did not move are left out of a delta.
    let received = |delta: &CountersDelta| {
        delta
            .peers
            .get(&peer.public_key)
            .map_or(0, |peer| peer.rx_bytes)
    };
    let arrived = |delta: &CountersDelta| {
        ["Udp.InDatagrams", "Udp6.InDatagrams"]
            .iter()
            .filter_map(|name| delta.protocols.get(*name))
            .fold(0_u64, |sum, one| sum.saturating_add(*one))
    };
    // Packets with a source outside allowed IPs arrive and count for no peer either.
    let not_allowed = |delta: &&CountersDelta| {
        delta
            .links
            .get(&tunnel.name)
            .is_some_and(|link| link.rx_errors > 0 || link.rx_frame_errors > 0)
    };
    let reset = |delta: &&CountersDelta| {
        delta
            .unreliable
            .iter()
            .any(|name| name.starts_with("peers."))
    };
    let sum = |count: &dyn Fn(&CountersDelta) -> u64| {
        loads
            .iter()
            .fold(0_u64, |sum, delta| sum.saturating_add(count(delta)))
    };
    let (came, out) = (sum(&arrived), sum(&received));
    // Handshakes are not queued behind the peer's packets: they go on, and tell this from a road that lets nothing pass,
    // on which the datagrams that arrive are somebody else's.
    let speaks = peer.handshake_age.is_some_and(|age| age < SESSION);
    if loads.len() < FEWEST_LOADS
        || came < FEWEST_ARRIVED
        || out > 0
        || !speaks
        || loads.iter().any(not_allowed)
        || loads.iter().any(reset)
    {
        return None;
    }
    let host = &evidence.facts(end)?.host;
    let (confidence, known) = match fault().map(|fault| fault.of(host)) {
        Some(Has::Yes) => (0.95, "its kernel is known for it"),
        Some(Has::Perhaps) => (0.85, "its kernel may be one of those known for it"),
        _ => (0.6, "its kernel is not among those known for it"),
    };
    let place = evidence.interface_at(end);
    let mut lines = vec![
        line("/sys/class/net/NAME/threaded", &place, (), 1, ""),
        line(
            "age of the last handshake",
            &place,
            SESSION,
            peer.handshake_age,
            "s",
        ),
        line(
            "Udp InDatagrams while the loads stalled, against bytes received from the peer",
            &place,
            came,
            out,
            "packets, bytes",
        ),
        line(
            "kernel (`uname -r`)",
            evidence.name(end),
            (),
            host.kernel.clone(),
            "",
        ),
    ];
    if let Some(fault) = fault() {
        lines.push(line(
            "kernels known for it",
            "public",
            (),
            fault.ranges(),
            "",
        ));
        lines.push(line("source", "public", (), fault.sources.join("; "), ""));
    }
    Some(Found {
        severity: Severity::Critical,
        confidence,
        effect: 1.0,
        host: evidence.name(end).to_owned(),
        direction: None,
        evidence: lines,
        because: format!(
            "{came} datagrams arrived at {} while the loads stalled, and not a byte of them came out of {place}: with threaded NAPI the kernel has lost the wake-up for this peer ({known}).",
            evidence.name(end)
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
        title: "Make the interface anew, without threaded NAPI; then update the kernel".to_owned(),
        // A peer that is stuck stays so until the interface is made anew, which is no setting to try.
        changes: Vec::new(),
        commands,
        goal: Goal::Goodput,
        persistence: off.setting.persistence(&off.value),
        risk: "the tunnel is down for some seconds; all peers share one core when they receive"
            .to_owned(),
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
    use wirespeed_facts::{Implementation, Known, LinkDetail, PeerCounters};
    use wirespeed_measure::Direction;

    use super::*;
    use crate::testing::{at, codes, each_sample, facts_of, healthy, set_ratio, tunnel_of};
    use crate::{Diagnosis, judge};

    fn stalled(release: &str, datagrams: u64, bytes: u64) -> Evidence {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let facts = facts_of(&mut evidence, End::Far);
        facts.host.kernel = release.to_owned();
        facts.links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(true),
            ..LinkDetail::default()
        });
        for direction in [Direction::Upload, Direction::Download] {
            set_ratio(&mut evidence, direction, 0.0);
            each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
                sample.stalled = true;
                let delta = at(sample, End::Far);
                delta
                    .protocols
                    .insert("Udp.InDatagrams".to_owned(), datagrams);
                if bytes > 0 {
                    delta.peers.insert(
                        "here-key".to_owned(),
                        PeerCounters {
                            rx_bytes: bytes,
                            tx_bytes: 100,
                        },
                    );
                }
            });
        }
        evidence
    }

    fn found_in(diagnosis: &Diagnosis) -> bool {
        diagnosis
            .findings
            .iter()
            .any(|finding| finding.code == CODE)
    }

    #[test]
    fn what_arrives_and_never_comes_out_is_a_stall() {
        let diagnosis = judge(&stalled("6.1.150", 40, 0));
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
    fn it_takes_datagrams_that_arrive_and_no_byte_from_the_peer() {
        // Ten stalled loads.
        assert!(found_in(&judge(&stalled("6.1.150", 5, 0))));
        assert!(!found_in(&judge(&stalled("6.1.150", 4, 0))));
        assert!(!found_in(&judge(&stalled("6.1.150", 40, 32))));
    }

    #[test]
    fn a_dead_session_or_sources_not_allowed_are_something_else() {
        let mut dead = stalled("6.1.150", 40, 0);
        if let Known::Value(peers) = &mut tunnel_of(&mut dead, End::Far).peers {
            peers[0].handshake_age = Some(180.0);
        }
        assert!(!found_in(&judge(&dead)));
        let mut refused = stalled("6.1.150", 40, 0);
        each_sample(&mut refused, Direction::Upload, Via::Tunnel, |sample| {
            let link = at(sample, End::Far).links.get_mut("wg1").unwrap();
            link.rx_frame_errors = 1;
        });
        assert!(!found_in(&judge(&refused)));
    }

    #[test]
    fn another_kernel_is_less_certain() {
        let confidence = |release: &str| judge(&stalled(release, 40, 0)).findings[0].confidence;
        assert!(confidence("6.8.12") < confidence("6.1.0-38-amd64"));
    }

    #[test]
    fn without_threads_or_in_a_daemon_it_is_something_else() {
        let mut evidence = stalled("6.1.150", 40, 0);
        facts_of(&mut evidence, End::Far).links[0].detail = Known::Value(LinkDetail {
            threaded: Known::Value(false),
            ..LinkDetail::default()
        });
        assert!(!found_in(&judge(&evidence)));
        assert!(!found_in(&judge(&healthy())));
    }
}
