//! `conntrack-cost`: following every connection of and through the tunnel takes processor time that is missing.
//!
//! Said only where the processor has no time to spare, connections are followed at all, and what was counted makes it a
//! noticeable part of the busy time: a packet costs as much with few as with many others in the table. A daemon's work for
//! a packet is so much more that it hardly ever is there.

use wirespeed_facts::{Firewall, Known, TunnelFilter};
use wirespeed_measure::{Direction, Via};
use wirespeed_words::say;

use super::cpu_saturated;
use super::firewall_cost::{Passed, filter, passed};
use crate::finding::{Check, Found, Outcome, command, line, percent, rates_line};
use crate::readings::fullest_conntrack;
use crate::view::{DIRECTIONS, ENDS, median, moved, only};
use crate::{End, Evidence, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "conntrack-cost";

pub(super) const CHECK: Check = Check::new(CODE, || say!("conntrack-cost-title"), run);

/// What looking a packet's connection up and following it takes, seconds. Measured on a virtual EPYC of 2022: 0.4 µs for
/// packets of one connection, 0.5 to 0.7 µs with
/// packets of 1,000 to 50,000 in turn; as much with 100,000 others in the table. Less is reckoned, for faster cores.
const SECONDS_PER_PACKET: f64 = 300e-9;
/// Share of the busy time from which it is worth a word, and from which it is a warning.
const WORTH_A_WORD: f64 = 0.05;
const WORTH_A_WARNING: f64 = 0.15;

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let hits: Vec<(Direction, f64)> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| Some((direction, share(evidence, end, direction)?)))
            .collect();
        outcome.found.extend(found(evidence, end, &hits));
    }
    outcome
}

/// Share of the busy time, where it is large enough.
fn share(evidence: &Evidence, end: End, direction: Direction) -> Option<f64> {
    let entries = fullest_conntrack(evidence, end)?.entries;
    let filter = filter(evidence, end)?;
    if entries == 0 || !cpu_saturated::full(evidence, end, direction) {
        return None;
    }
    let share = median(
        evidence
            .samples(direction, Via::Tunnel)
            .into_iter()
            .filter_map(|sample| passed(evidence, end, moved(sample, end)?))
            .map(|passed| followed(filter, &passed) as f64 * SECONDS_PER_PACKET / passed.busy),
    )?;
    (share >= WORTH_A_WORD).then_some(share)
}

/// Packets that connection tracking followed.
fn followed(filter: &TunnelFilter, passed: &Passed) -> u64 {
    let unless = |untracked: &Known<bool>, packets: u64| {
        if untracked.value() == Some(&false) {
            packets
        } else {
            0
        }
    };
    unless(
        &filter.outer_untracked,
        passed.outer_in.saturating_add(passed.outer_out),
    )
    .saturating_add(unless(
        &filter.inner_untracked,
        passed.inner_in.saturating_add(passed.inner_out),
    ))
}

fn found(evidence: &Evidence, end: End, hits: &[(Direction, f64)]) -> Option<Found> {
    let worst = hits.iter().map(|(_, share)| *share).reduce(f64::max)?;
    let filter = filter(evidence, end)?;
    let table = fullest_conntrack(evidence, end)?;
    let directions: Vec<Direction> = hits.iter().map(|(direction, _)| *direction).collect();
    let place = evidence.interface_at(end);
    let mut lines = vec![line(
        "net.netfilter.nf_conntrack_count",
        evidence.name(end),
        table.room,
        table.entries,
        "connections",
    )];
    for (direction, share) in hits {
        lines.push(line(
            say!("conntrack-cost-line-share", direction = direction.word()),
            &place,
            (),
            *share,
            "share",
        ));
        lines.extend(rates_line(evidence, *direction));
    }
    let (remedies, refused) = untracked(evidence, end, filter);
    Some(Found {
        severity: if worst >= WORTH_A_WARNING {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: 0.5,
        effect: worst,
        host: evidence.name(end).to_owned(),
        direction: only(&directions),
        evidence: lines,
        because: say!(
            "conntrack-cost-because",
            host = evidence.name(end),
            share = percent(worst)
        ),
        remedies,
        refused,
    })
}

/// NOTRACK where nothing needs the state; refused where something does.
fn untracked(evidence: &Evidence, end: End, filter: &TunnelFilter) -> (Vec<Remedy>, Vec<Refusal>) {
    let (mut remedies, mut refused) = (Vec::new(), Vec::new());
    let Some(tunnel) = evidence.tunnel(end) else {
        return (remedies, refused);
    };
    let firewall = evidence.facts(end).and_then(|facts| facts.firewall.value());
    // Connections are followed only where some rule asks for it.
    let all_seen =
        |firewall: &Firewall| (firewall.uses_conntrack || firewall.translates) && !firewall.legacy;
    if !firewall.is_some_and(all_seen) {
        refused.push(Refusal {
            remedy: say!("conntrack-cost-refused", host = evidence.name(end)),
            why: say!("conntrack-cost-refused-why"),
        });
        return (remedies, refused);
    }
    let place = evidence.interface_at(end);
    if let (Some(port), Some(false)) = (tunnel.listen_port, filter.outer_untracked.value()) {
        if filter.outer_uses_conntrack {
            refused.push(Refusal {
                remedy: say!(
                    "conntrack-cost-refused-outer",
                    port = port.to_string(),
                    host = evidence.name(end)
                ),
                why: say!("conntrack-cost-refused-why-outer"),
            });
        } else {
            remedies.push(notrack(
                evidence,
                end,
                "wirespeed_outer",
                say!("conntrack-cost-remedy-outer", port = port.to_string()),
                &format!("udp dport {port} notrack"),
                &format!("udp sport {port} notrack"),
            ));
        }
    }
    if filter.inner_untracked.value() == Some(&false) {
        if let Some(why) = needs_inner_connections(evidence, end, filter) {
            refused.push(Refusal {
                remedy: say!("conntrack-cost-refused-inner", interface = place),
                why,
            });
        } else if tunnel.name.bytes().all(is_plain) {
            let name = format!("\"{}\"", tunnel.name);
            remedies.push(notrack(
                evidence,
                end,
                "wirespeed_inner",
                say!("conntrack-cost-remedy-inner", interface = &tunnel.name),
                &format!("iifname {name} notrack"),
                &format!("oifname {name} notrack"),
            ));
        }
    }
    (remedies, refused)
}

/// What needs the connections of that which goes through the tunnel.
fn needs_inner_connections(evidence: &Evidence, end: End, filter: &TunnelFilter) -> Option<String> {
    let facts = evidence.facts(end)?;
    // `oifname "eth0" masquerade`, of a gateway to the internet, is on the way beyond the tunnel.
    let translates = facts
        .firewall
        .value()
        .is_some_and(|firewall| firewall.translates);
    let forwards = facts
        .link(&evidence.tunnel(end)?.name)
        .is_some_and(|link| link.forwards_ipv4 == Some(true) || link.forwards_ipv6 == Some(true));
    if filter.inner_translated || translates {
        Some(say!("conntrack-cost-refused-why-translated"))
    } else if filter.inner_uses_conntrack {
        Some(say!("conntrack-cost-refused-why-inner"))
    } else if forwards {
        Some(say!("conntrack-cost-refused-why-forwarded"))
    } else {
        None
    }
}

/// A letter of an interface's name as wg-quick allows them: it may stand in the quotes of a shell and of nft.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_=+.-".contains(&byte)
}

/// Each with a table of its own, so that taking one back leaves the other.
fn notrack(
    evidence: &Evidence,
    end: End,
    table: &str,
    title: String,
    coming: &str,
    leaving: &str,
) -> Remedy {
    let lines = [
        format!("nft add table inet {table}"),
        format!("nft 'add chain inet {table} pre {{ type filter hook prerouting priority raw; }}'"),
        format!("nft 'add chain inet {table} out {{ type filter hook output priority raw; }}'"),
        format!("nft 'add rule inet {table} pre {coming}'"),
        format!("nft 'add rule inet {table} out {leaving}'"),
    ];
    Remedy {
        title,
        changes: Vec::new(),
        commands: lines
            .iter()
            .map(|text| command(evidence, end, text))
            .collect(),
        goal: Goal::Goodput,
        persistence: say!("conntrack-cost-persistence"),
        risk: say!("conntrack-cost-risk"),
        undo: command(evidence, end, format!("nft delete table inet {table}")),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{ConntrackTable, Implementation};

    use super::*;
    use crate::testing::{at, core, each_sample, facts_of, healthy, set_ratio, tunnel_of};
    use crate::{Finding, judge};

    fn following(entries: u64, packets: u64, change: impl Fn(&mut TunnelFilter)) -> Evidence {
        let mut evidence = healthy();
        set_ratio(&mut evidence, Direction::Upload, 0.6);
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        let mut filter = TunnelFilter {
            outer_untracked: Known::Value(false),
            inner_untracked: Known::Value(false),
            ..TunnelFilter::default()
        };
        change(&mut filter);
        facts_of(&mut evidence, End::Far).firewall = Known::Value(Firewall {
            uses_conntrack: true,
            tunnels: [("wg1".to_owned(), filter)].into(),
            ..Firewall::default()
        });
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let delta = at(sample, End::Far);
            // 4 s busy in all; the kernel's tunnel has no daemon.
            delta.cores = vec![core(1.0); 4];
            delta.processes.clear();
            delta.links.get_mut("wg1").unwrap().rx_packets = packets;
            // Small ones that nobody coalesces, outside and inside.
            delta
                .protocols
                .insert("Ip.InReceives".to_owned(), 2 * packets);
            delta.conntrack = Some(ConntrackTable {
                entries,
                room: 262_144,
            });
        });
        evidence
    }

    fn finding(evidence: &Evidence) -> Option<Finding> {
        judge(evidence)
            .findings
            .into_iter()
            .find(|finding| finding.code == CODE)
    }

    #[test]
    fn it_is_reckoned_from_what_was_counted() {
        // Outer and inner: twice 0.3 µs a packet, of 4 s.
        let info = finding(&following(1000, 340_000, |_| {})).unwrap();
        assert_eq!(
            (info.severity, info.host.as_str()),
            (Severity::Info, "server")
        );
        assert_eq!(info.remedies.len(), 2);
        assert!(info.remedies[0].commands[3].contains("udp dport 51820 notrack"));
        assert_eq!(
            finding(&following(1000, 1_010_000, |_| {}))
                .unwrap()
                .severity,
            Severity::Warning
        );
        assert_eq!(finding(&following(1000, 330_000, |_| {})), None);
        // How many are followed makes no difference, unless none is.
        assert_eq!(finding(&following(1, 340_000, |_| {})).unwrap().code, CODE);
        assert_eq!(finding(&following(0, 340_000, |_| {})), None);
    }

    #[test]
    fn packets_that_were_coalesced_inside_are_looked_up_once() {
        let mut evidence = following(1000, 650_000, |_| {});
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far)
                .protocols
                .insert("Ip.InReceives".to_owned(), 660_000);
        });
        assert_eq!(finding(&evidence), None);
    }

    #[test]
    fn what_is_not_tracked_costs_nothing() {
        let evidence = following(1000, 340_000, |filter| {
            filter.inner_untracked = Known::Value(true);
        });
        assert_eq!(finding(&evidence), None);
    }

    #[test]
    fn what_needs_the_state_keeps_it() {
        let evidence = following(5000, 1_000_000, |filter| {
            filter.inner_translated = true;
            filter.outer_uses_conntrack = true;
        });
        let finding = finding(&evidence).unwrap();
        assert!(finding.remedies.is_empty());
        assert!(finding.refused[0].why.contains("wg-quick"));
        assert!(finding.refused[1].why.contains("translated"));
    }

    fn change_firewall(evidence: &mut Evidence, change: impl Fn(&mut Firewall)) {
        match &mut facts_of(evidence, End::Far).firewall {
            Known::Value(firewall) => change(firewall),
            Known::Unknown(because) => panic!("{because}"),
        }
    }

    #[test]
    fn what_is_translated_on_its_way_elsewhere_is_followed_on() {
        let mut evidence = following(5000, 1_000_000, |_| {});
        change_firewall(&mut evidence, |firewall| firewall.translates = true);
        let finding = finding(&evidence).unwrap();
        assert_eq!(finding.remedies.len(), 1);
        assert!(finding.remedies[0].commands[3].contains("udp dport"));
        assert!(finding.refused[0].why.contains("translated"));
    }

    #[test]
    fn half_of_a_forwarded_connection_is_not_left_out() {
        let mut evidence = following(5000, 1_000_000, |_| {});
        facts_of(&mut evidence, End::Far).links[0].forwards_ipv4 = Some(true);
        let finding = finding(&evidence).unwrap();
        assert_eq!(finding.remedies.len(), 1);
        assert!(finding.refused[0].why.contains("forwarded"));
    }

    #[test]
    fn rules_that_nft_does_not_tell_may_need_the_state() {
        for legacy in [false, true] {
            let mut evidence = following(5000, 1_000_000, |_| {});
            change_firewall(&mut evidence, |firewall| {
                firewall.uses_conntrack = legacy;
                firewall.legacy = legacy;
            });
            let finding = finding(&evidence).unwrap();
            assert!(finding.remedies.is_empty());
            assert!(finding.refused[0].why.contains("iptables-legacy"));
        }
    }

    #[test]
    fn each_remedy_is_taken_back_by_itself() {
        let remedies = finding(&following(5000, 1_000_000, |_| {}))
            .unwrap()
            .remedies;
        assert_ne!(remedies[0].undo, remedies[1].undo);
        assert!(remedies[1].commands[3].contains("pre iifname \"wg1\" notrack'"));
    }

    #[test]
    fn a_name_that_ends_the_quotes_gets_no_command() {
        let mut evidence = following(5000, 1_000_000, |_| {});
        let odd = "w'$(id)".to_owned();
        tunnel_of(&mut evidence, End::Far).name.clone_from(&odd);
        evidence.far_interface = Some(odd.clone());
        change_firewall(&mut evidence, |firewall| {
            let filter = firewall.tunnels.remove("wg1").unwrap();
            firewall.tunnels.insert(odd.clone(), filter);
        });
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let links = &mut at(sample, End::Far).links;
            let link = links.remove("wg1").unwrap();
            links.insert(odd.clone(), link);
        });
        let remedies = finding(&evidence).unwrap().remedies;
        assert_eq!(remedies.len(), 1);
        assert!(remedies[0].title.contains("own packets"));
    }

    #[test]
    fn with_time_to_spare_nothing_is_said() {
        let mut evidence = following(5000, 1_000_000, |_| {});
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            at(sample, End::Far).cores = vec![core(0.8); 4];
        });
        assert_eq!(finding(&evidence), None);
    }
}
