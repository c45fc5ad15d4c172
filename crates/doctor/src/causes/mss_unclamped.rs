//! `mss-unclamped`: hosts behind a gateway announce and send TCP segments that are too large for the tunnel.
//!
//! A gateway that forwards into a tunnel without clamping the MSS is healthy as long as its "fragmentation needed"
//! reaches the hosts behind it; that alone is no finding. It becomes one where packets too large for the tunnel keep
//! coming (`Ip FragFails` at the gateway), and a serious one where the gateway's errors about them don't even leave it
//! (`OutDiscards` rises alike: its own packet filter drops them).

use std::ops::RangeInclusive;
use wirespeed_words::say;

use wirespeed_facts::{Facts, Known, Link, Tunnel, TunnelFilter};
use wirespeed_measure::Direction;
use wirespeed_settings::shell_word;

use crate::cards::outer_names;
use crate::finding::{Check, Found, Outcome, command, line};
use crate::view::{DIRECTIONS, ENDS, moved};
use crate::{End, Evidence, Goal, Refusal, Remedy, Severity};

pub(super) const CODE: &str = "mss-unclamped";

pub(super) const CHECK: Check = Check::new(CODE, || say!("mss-unclamped-title"), run);

const FRAG_FAILS: &str = "Ip.FragFails";
const FRAG_FAILS_6: &str = "Ip6.InTooBigErrors";
const OUT_DISCARDS: [&str; 2] = ["Ip.OutDiscards", "Ip6.OutDiscards"];
/// New connections meet the tunnel's MTU once each, in a burst: in fewer than this many windows of observation it is
/// nothing that lasts …
const FEWEST_WINDOWS: usize = 4;
/// … nor with fewer packets than this.
const FEWEST_PACKETS: u64 = 8;
/// The gateway's errors don't leave it when this many packets were dropped on their way out for each that was too large: it
/// gets one error, and more of them are something else's …
const SWALLOWED: RangeInclusive<f64> = 0.8..=1.25;
/// … as they are where windows without any have more than this part of those drops.
const STRAY: f64 = 0.2;

/// What the gateway counted of forwarded packets too large for their way on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TooLarge {
    packets: u64,
    /// Windows of observation in which there were any.
    windows: usize,
    /// Windows of observation.
    of: usize,
    /// Packets the machine itself dropped on their way out in those windows …
    discarded: u64,
    /// … and in the others, where no error can have been among them.
    discarded_else: u64,
}

impl TooLarge {
    /// Is it the errors that the machine dropped?
    fn swallowed(&self) -> bool {
        let for_each = self.discarded as f64 / self.packets.max(1) as f64;
        SWALLOWED.contains(&for_each) && self.discarded_else as f64 <= STRAY * self.discarded as f64
    }
}

fn run(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::default();
    for end in ENDS {
        let Some(behind) = behind(evidence, end) else {
            continue;
        };
        match clamped(evidence, end) {
            Known::Unknown(because) => outcome.not_known.push(say!(
                "mss-unclamped-unknown-clamp",
                host = evidence.name(end),
                because = because
            )),
            Known::Value(true) => {}
            Known::Value(false) => {
                let too_large = too_large(evidence, end);
                let lasts =
                    too_large.windows >= FEWEST_WINDOWS && too_large.packets >= FEWEST_PACKETS;
                if !lasts {
                    continue;
                }
                match narrower(evidence, end, behind) {
                    Some(other) => outcome.not_known.push(say!(
                        "mss-unclamped-unknown-link",
                        host = evidence.name(end),
                        link = &other.name,
                        mtu = other.mtu
                    )),
                    // The doctor's own loads fit the tunnel.
                    None => outcome
                        .of_no_load
                        .push(found(evidence, end, behind, too_large)),
                }
            }
        }
    }
    outcome
}

/// A network behind this end from which larger packets come into the tunnel: the end forwards, and has another link that
/// takes more than the tunnel does. The tunnel's own way out is one only where the other end sends everything through
/// the tunnel: then the internet is behind this end.
fn behind(evidence: &Evidence, end: End) -> Option<&Link> {
    let tunnel = evidence.tunnel(end)?;
    let facts = evidence.facts(end)?;
    let exit = evidence.peer_at(other(end)).is_some_and(|peer| {
        // Everything is sometimes written in two halves.
        let everything = |prefix: &String| prefix.ends_with("/0") || prefix.ends_with("/1");
        peer.allowed_ips.iter().any(everything)
    });
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
    others(facts, tunnel)
        .filter(|link| exit || outer_names(facts).all(|name| name != link.name))
        .filter(|link| !link.is_tunnel() && forwards(link))
        .find(|link| link.mtu > tunnel.mtu)
}

/// Another link by which packets from there may leave, and for which they may be too large as well.
fn narrower<'a>(evidence: &'a Evidence, end: End, behind: &Link) -> Option<&'a Link> {
    let (facts, tunnel) = evidence.facts(end).zip(evidence.tunnel(end))?;
    others(facts, tunnel).find(|link| link.mtu < behind.mtu)
}

/// The links of a machine that are up and have addresses, without the tunnel.
fn others<'a>(facts: &'a Facts, tunnel: &'a Tunnel) -> impl Iterator<Item = &'a Link> {
    facts
        .links
        .iter()
        .filter(|link| link.up && link.name != "lo" && link.name != tunnel.name)
        .filter(|link| !link.addresses.is_empty())
}

fn other(end: End) -> End {
    match end {
        End::Here => End::Far,
        End::Far => End::Here,
    }
}

/// Does something lower the MSS of connections from behind this end: this end itself for what comes out of the tunnel,
/// or the other end for what goes into it there? A far end that forwards nothing announces an MSS that fits by itself.
fn clamped(evidence: &Evidence, end: End) -> Known<bool> {
    let other = other(end);
    let own = filter(evidence, end).map(|filter| filter.clamps_mss_in);
    let theirs = match behind(evidence, other) {
        Some(_) => filter(evidence, other).map(|filter| filter.clamps_mss_out),
        None if evidence.tunnel(other).is_some() => Known::Value(true),
        None => Known::because(not_known(evidence, other)),
    };
    match (own, theirs) {
        (Known::Value(true), _) | (_, Known::Value(true)) => Known::Value(true),
        (Known::Value(false), Known::Value(false)) => Known::Value(false),
        (Known::Unknown(because), _) | (_, Known::Unknown(because)) => Known::Unknown(because),
    }
}

fn not_known(evidence: &Evidence, end: End) -> String {
    say!("mss-unclamped-unknown-host", host = evidence.name(end))
}

fn filter(evidence: &Evidence, end: End) -> Known<TunnelFilter> {
    let Some((facts, tunnel)) = evidence.facts(end).zip(evidence.tunnel(end)) else {
        return Known::because(not_known(evidence, end));
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
        let discarded = OUT_DISCARDS
            .into_iter()
            .map(count)
            .fold(0, u64::saturating_add);
        let of_these = if packets > 0 {
            &mut sum.discarded
        } else {
            &mut sum.discarded_else
        };
        *of_these = of_these.saturating_add(discarded);
    }
    sum
}

fn found(evidence: &Evidence, end: End, behind: &Link, too_large: TooLarge) -> Found {
    let host = evidence.name(end);
    let swallowed = too_large.swallowed();
    let tunnel_mtu = evidence.tunnel(end).map_or(0, |tunnel| tunnel.mtu);
    let mut lines = vec![
        line(
            say!(
                "mss-unclamped-line-too-large",
                windows = too_large.windows,
                of = too_large.of
            ),
            host,
            (),
            too_large.packets,
            "packets",
        ),
        line(
            say!("mss-unclamped-line-mtu", link = &behind.name),
            evidence.interface_at(end),
            behind.mtu,
            tunnel_mtu,
            "bytes",
        ),
        line(
            say!("mss-unclamped-line-rules"),
            evidence.interface_at(end),
            (),
            0,
            "rules",
        ),
    ];
    if swallowed {
        lines.push(line(
            say!("mss-unclamped-line-dropped"),
            host,
            (),
            too_large.discarded,
            "packets",
        ));
    }
    let because = if swallowed {
        say!("mss-unclamped-because-swallowed", host = host)
    } else {
        say!("mss-unclamped-because", host = host)
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
            remedy: say!("mss-unclamped-refused"),
            why: say!("mss-unclamped-refused-why"),
        }],
    }
}

/// A rule on the tunnel's interface only, both ways, for both families. That nothing clamps is known from nft, so it is there.
fn clamp(evidence: &Evidence, end: End) -> Remedy {
    let name = evidence
        .tunnel(end)
        .map_or("wg0", |tunnel| tunnel.name.as_str());
    // nft wants a name in quotes, and the shell those in quotes of its own.
    let quoted = shell_word(&format!("\"{name}\"")).into_owned();
    let rule = |way: &str| {
        format!(
            "nft add rule inet wirespeed-mss forward {way} {quoted} tcp flags syn / syn,rst tcp option maxseg size set rt mtu"
        )
    };
    let commands = [
        "nft add table inet wirespeed-mss".to_owned(),
        "nft add chain inet wirespeed-mss forward '{ type filter hook forward priority mangle; }'"
            .to_owned(),
        rule("oifname"),
        rule("iifname"),
    ];
    Remedy {
        title: say!("mss-unclamped-remedy", place = evidence.interface_at(end)),
        changes: Vec::new(),
        commands: commands
            .into_iter()
            .map(|text| command(evidence, end, text))
            .collect(),
        goal: Goal::Goodput,
        persistence: say!("mss-unclamped-persistence"),
        risk: say!("mss-unclamped-risk"),
        undo: command(evidence, end, "nft delete table inet wirespeed-mss"),
    }
}

#[cfg(test)]
mod tests;
