//! `mss-unclamped`: hosts behind a gateway announce and send TCP segments that are too large for the tunnel.
//!
//! A gateway that forwards into a tunnel without clamping the MSS is healthy as long as its "fragmentation needed"
//! reaches the hosts behind it; that alone is no finding. It becomes one where packets too large for the tunnel keep
//! coming (`Ip FragFails` at the gateway), and a serious one where the gateway's errors about them don't even leave it
//! (`Ip OutDiscards` rises alike: its own packet filter drops them).

use wirespeed_facts::{Known, Link, TunnelFilter};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;

use crate::finding::{Check, Found, Outcome, command, line};
use crate::view::{DIRECTIONS, ENDS, moved};
use crate::{End, Evidence, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "mss-unclamped";

pub(super) const CHECK: Check = Check::new(
    CODE,
    "Hosts behind a gateway send segments too large for the tunnel",
    run,
);

const FRAG_FAILS: &str = "Ip.FragFails";
const FRAG_FAILS_6: &str = "Ip6.InTooBigErrors";
const OUT_DISCARDS: &str = "Ip.OutDiscards";
/// New connections meet the tunnel's MTU once each, in a burst: in fewer than this many windows of observation it is
/// nothing that lasts …
const FEWEST_WINDOWS: usize = 4;
/// … nor with fewer packets than this.
const FEWEST_PACKETS: u64 = 8;
/// The gateway's errors don't leave it when at least this share of the packets left without one.
const SWALLOWED: f64 = 0.8;

/// What the gateway counted of forwarded packets too large for their way on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TooLarge {
    packets: u64,
    /// Windows of observation in which there were any.
    windows: usize,
    /// Windows of observation.
    of: usize,
    /// Packets the machine itself dropped on their way out.
    discarded: u64,
}

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(behind) = behind(evidence, end) else {
            continue;
        };
        match clamped(evidence, end) {
            Known::Unknown(because) => outcome.not_known.push(format!(
                "{} forwards into the tunnel, and whether it clamps the MSS is not known: {because}",
                evidence.name(end)
            )),
            Known::Value(true) => {}
            Known::Value(false) => {
                let too_large = too_large(evidence, end);
                let lasts = too_large.windows >= FEWEST_WINDOWS
                    && too_large.packets >= FEWEST_PACKETS;
                if lasts {
                    outcome
                        .found
                        .push(found(evidence, end, behind, too_large));
                }
            }
        }
    }
    outcome
}

/// A network behind this end from which larger packets come into the tunnel: the end forwards, and has another link,
/// not the tunnel's own way out, that takes more than the tunnel does.
fn behind(evidence: &Evidence, end: End) -> Option<&Link> {
    let tunnel = evidence.tunnel(end)?;
    let facts = evidence.facts(end)?;
    let global = |name: &str| {
        facts
            .sysctls
            .get(name)
            .and_then(Known::value)
            .is_some_and(|value| value.trim() == "1")
    };
    let forwards = |link: &Link| {
        link.forwards_ipv4
            .unwrap_or_else(|| global("net.ipv4.ip_forward"))
            || link
                .forwards_ipv6
                .unwrap_or_else(|| global("net.ipv6.conf.all.forwarding"))
    };
    facts
        .links
        .iter()
        .filter(|link| link.up && link.name != "lo" && link.name != tunnel.name)
        .filter(|link| !facts.outer_links.contains(&link.name) && !link.is_tunnel())
        .filter(|link| !link.addresses.is_empty() && forwards(link))
        .find(|link| link.mtu > tunnel.mtu)
}

/// Does something lower the MSS of connections from behind this end: this end itself for what comes out of the tunnel,
/// or the other end for what goes into it there? A far end that forwards nothing announces an MSS that fits by itself.
fn clamped(evidence: &Evidence, end: End) -> Known<bool> {
    let other = match end {
        End::Here => End::Far,
        End::Far => End::Here,
    };
    let own = filter(evidence, end).map(|filter| filter.clamps_mss_in);
    let theirs = match behind(evidence, other) {
        Some(_) => filter(evidence, other).map(|filter| filter.clamps_mss_out),
        None if evidence.tunnel(other).is_some() => Known::Value(true),
        None => Known::because(format!("nothing is known of {}", evidence.name(other))),
    };
    match (own, theirs) {
        (Known::Value(true), _) | (_, Known::Value(true)) => Known::Value(true),
        (Known::Value(false), Known::Value(false)) => Known::Value(false),
        (Known::Unknown(because), _) | (_, Known::Unknown(because)) => Known::Unknown(because),
    }
}

fn filter(evidence: &Evidence, end: End) -> Known<TunnelFilter> {
    let Some((facts, tunnel)) = evidence.facts(end).zip(evidence.tunnel(end)) else {
        return Known::because(format!("nothing is known of {}", evidence.name(end)));
    };
    // Without any rule about the tunnel's packets there is none that clamps.
    facts
        .firewall
        .clone()
        .map(|mut firewall| firewall.tunnels.remove(&tunnel.name).unwrap_or_default())
}

/// The doctor's own loads fit the tunnel; what does not fit comes from somebody else.
fn too_large(evidence: &Evidence, end: End) -> TooLarge {
    let mut sum = TooLarge::default();
    let probing = match end {
        End::Here => evidence.probing_here.as_ref(),
        End::Far => evidence.probing_far.as_ref(),
    };
    let loads = DIRECTIONS
        .into_iter()
        .filter_map(|direction: Direction| evidence.comparison(direction))
        .flat_map(|comparison| &comparison.samples)
        .filter_map(|sample| moved(sample, end));
    let watched = evidence
        .passive
        .iter()
        .filter_map(|watch| match end {
            End::Here => Some(&watch.here),
            End::Far => watch.far.as_ref(),
        })
        .flat_map(|watched| &watched.slices);
    for delta in probing.into_iter().chain(loads).chain(watched) {
        let count = |name: &str| delta.protocols.get(name).copied().unwrap_or(0);
        let packets = count(FRAG_FAILS).saturating_add(count(FRAG_FAILS_6));
        sum.of += 1;
        sum.windows += usize::from(packets > 0);
        sum.packets = sum.packets.saturating_add(packets);
        if packets > 0 {
            sum.discarded = sum.discarded.saturating_add(count(OUT_DISCARDS));
        }
    }
    sum
}

fn found(evidence: &Evidence, end: End, behind: &Link, too_large: TooLarge) -> Found {
    let host = evidence.name(end);
    let swallowed = too_large.discarded as f64 >= SWALLOWED * too_large.packets as f64;
    let tunnel_mtu = evidence.tunnel(end).map_or(0, |tunnel| tunnel.mtu);
    let mut lines = vec![
        line(
            format!(
                "forwarded packets too large for their way on (Ip FragFails), in {} of {} windows",
                too_large.windows, too_large.of
            ),
            host,
            (),
            too_large.packets,
            "packets",
        ),
        line(
            format!("MTU of {} behind it, and of the tunnel", behind.name),
            evidence.interface_at(end),
            behind.mtu,
            tunnel_mtu,
            "bytes",
        ),
        line(
            "rules that lower the MSS of connections through the tunnel (nft, forward)",
            evidence.interface_at(end),
            (),
            0,
            "rules",
        ),
    ];
    if swallowed {
        lines.push(line(
            "packets the machine dropped on their way out meanwhile (Ip OutDiscards)",
            host,
            (),
            too_large.discarded,
            "packets",
        ));
    }
    let because = if swallowed {
        format!(
            "Hosts behind {host} keep sending packets larger than the tunnel takes, and the errors that would tell them never leave {host}: its own packet filter drops them. Their connections hang."
        )
    } else {
        format!(
            "Hosts behind {host} keep sending packets larger than the tunnel takes, and nothing lowers their MSS: each connection loses its first full packets, and where {host}'s errors are filtered on the way it hangs."
        )
    };
    Found {
        severity: if swallowed {
            Severity::Warning
        } else {
            Severity::Info
        },
        confidence: if swallowed { 0.9 } else { 0.6 },
        effect: if swallowed { 0.8 } else { 0.1 },
        host: host.to_owned(),
        direction: None,
        evidence: lines,
        because,
        remedies: vec![clamp(evidence, end)],
        refused: vec![Refusal {
            remedy: "clamping the MSS, for QUIC and other UDP".to_owned(),
            why: "the MSS is TCP's alone: programs that send UDP have to find the size by themselves, which needs the ICMP errors to pass".to_owned(),
        }],
    }
}

/// A rule on the tunnel's interface only, both ways, by the packet filter that is there.
fn clamp(evidence: &Evidence, end: End) -> Remedy {
    let name = evidence
        .tunnel(end)
        .map_or("wg0", |tunnel| tunnel.name.as_str());
    let facts = evidence.facts(end);
    let has = |program: &str| {
        facts.is_some_and(|facts| {
            facts
                .programs
                .get(program)
                .is_some_and(|version| version.value().is_some())
        })
    };
    let nft = facts.is_some_and(|facts| facts.firewall.value().is_some()) || has("nft");
    let (commands, undo) = if nft {
        // nft wants a name in quotes, and the shell those in quotes of its own.
        let quoted = shell_word(&format!("\"{name}\"")).into_owned();
        let rule = |way: &str| {
            format!(
                "nft add rule inet wirespeed-mss forward {way} {quoted} tcp flags syn / syn,rst tcp option maxseg size set rt mtu"
            )
        };
        (
            vec![
                "nft add table inet wirespeed-mss".to_owned(),
                "nft add chain inet wirespeed-mss forward '{ type filter hook forward priority mangle; }'".to_owned(),
                rule("oifname"),
                rule("iifname"),
            ],
            vec!["nft delete table inet wirespeed-mss".to_owned()],
        )
    } else {
        let name = shell_word(name);
        let rule = |action: &str, way: &str| {
            format!(
                "iptables -t mangle {action} FORWARD {way} {name} -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"
            )
        };
        (
            vec![rule("-A", "-o"), rule("-A", "-i")],
            vec![rule("-D", "-o"), rule("-D", "-i")],
        )
    };
    let on_it = |texts: Vec<String>| -> Vec<String> {
        texts
            .into_iter()
            .map(|text| command(evidence, end, text))
            .collect()
    };
    Remedy {
        title: format!(
            "Lower the MSS of TCP connections that pass {}",
            evidence.interface_at(end)
        ),
        changes: Vec::new(),
        commands: on_it(commands),
        goal: Goal::Goodput,
        persistence: "the same table in /etc/nftables.conf, or the commands as PostUp and their undo as PostDown in the wg-quick file".to_owned(),
        risk: "TCP connections made after it through this tunnel only; does nothing for QUIC and other UDP".to_owned(),
        undo: on_it(undo).join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::{Firewall, Known, Link};
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::testing::{
        at, each_sample, facts_of, forget_far, healthy, not_checked, nothing, only_finding,
    };
    use crate::{End, Evidence, Severity};

    /// Two sites, and at the first some host sends packets of 1,500 bytes all the time.
    fn sites(per_sample: u64, discarded: u64) -> Evidence {
        let mut evidence = healthy();
        for end in [End::Here, End::Far] {
            let facts = facts_of(&mut evidence, end);
            facts.firewall = Known::Value(Firewall::default());
            facts.links.push(Link {
                index: 5,
                name: "lan0".to_owned(),
                up: true,
                mtu: 1500,
                addresses: vec!["10.1.0.1/24".to_owned()],
                forwards_ipv4: Some(true),
                ..Link::default()
            });
        }
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            let protocols = &mut at(sample, End::Here).protocols;
            protocols.insert("Ip.FragFails".to_owned(), per_sample);
            protocols.insert("Ip.OutDiscards".to_owned(), discarded);
        });
        evidence
    }

    #[test]
    fn gateways_that_do_not_clamp_are_healthy_while_nobody_suffers() {
        nothing(&sites(0, 0));
    }

    #[test]
    fn packets_too_large_are_worth_a_word_when_they_keep_coming() {
        nothing(&sites(1, 0));
        let finding = only_finding(&sites(2, 0), CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Info, "client")
        );
        let mut burst = sites(0, 0);
        burst
            .probing_here
            .as_mut()
            .unwrap()
            .protocols
            .insert("Ip.FragFails".to_owned(), 500);
        nothing(&burst);
    }

    #[test]
    fn errors_that_never_leave_the_gateway_are_a_warning() {
        assert_eq!(only_finding(&sites(10, 7), CODE).severity, Severity::Info);
        let finding = only_finding(&sites(10, 8), CODE);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.remedies[0].commands[2].contains("oifname '\"wg0\"'"));
    }

    #[test]
    fn a_clamp_at_either_end_is_enough() {
        let clamping = |end: End, incoming: bool| {
            let mut evidence = sites(10, 10);
            if let Known::Value(firewall) = &mut facts_of(&mut evidence, end).firewall {
                let name = if end == End::Here { "wg0" } else { "wg1" };
                let filter = firewall.tunnels.entry(name.to_owned()).or_default();
                filter.clamps_mss_in = incoming;
                filter.clamps_mss_out = !incoming;
            }
            evidence
        };
        nothing(&clamping(End::Here, true));
        nothing(&clamping(End::Far, false));
        only_finding(&clamping(End::Here, false), CODE);
        only_finding(&clamping(End::Far, true), CODE);
    }

    #[test]
    fn a_machine_without_hosts_behind_it_has_nothing_to_clamp() {
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Here).links[1].forwards_ipv4 = Some(false);
        nothing(&evidence);
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Here).links[1].mtu = 1420;
        nothing(&evidence);
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Here).outer_links = vec!["lan0".to_owned()];
        nothing(&evidence);
        // The far end's own connections announce what fits.
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Far).links.pop();
        nothing(&evidence);
    }

    #[test]
    fn an_unknown_packet_filter_or_far_end_is_said_to_be_unknown() {
        let mut evidence = sites(10, 10);
        facts_of(&mut evidence, End::Here).firewall = Known::because("nft is not installed");
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
        let mut evidence = sites(10, 10);
        forget_far(&mut evidence);
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
    }
}
