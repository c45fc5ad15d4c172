//! What the packet filter does with a tunnel's packets.
//!
//! Four kinds of packets are led through the hooks they pass: outer ones in and out, inner ones in and out. Each is
//! led twice: as one of an established flow, to count the rules most packets are compared with; and as one of
//! which the connection's state is not known, to find every rule that may have an effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Known;
use crate::firewall::Ruleset;
use crate::firewall_match::{Interface, Packet, Truth};
use crate::firewall_walk::{Fate, Way};

/// What the packet filter means for one tunnel.
///
/// Rules are counted that a packet of an established flow may have to be compared with, up to the first that
/// certainly decides; jumps that such a packet cannot take are not followed, and chains of the type `nat` do not
/// count, since only the first packet of a flow sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TunnelFilter {
    /// Rules per hook in the way of an outer packet that comes in (UDP to the listen port).
    pub outer_in: BTreeMap<String, usize>,
    /// Rules per hook in the way of an outer packet that leaves (UDP from the listen port).
    pub outer_out: BTreeMap<String, usize>,
    /// Rules per hook in the way of an inner packet that comes out of the tunnel, for this machine or others.
    pub inner_in: BTreeMap<String, usize>,
    /// Rules per hook in the way of an inner packet that goes into the tunnel, from this machine or others.
    pub inner_out: BTreeMap<String, usize>,
    /// Outer packets are kept out of connection tracking (`notrack`), both ways.
    pub outer_untracked: Known<bool>,
    /// Inner packets are kept out of connection tracking, both ways.
    pub inner_untracked: Known<bool>,
    /// Some rule may look at or set the connection of outer packets (`ct state`, `ct mark` …): NOTRACK would change
    /// its meaning. wg-quick's rules for a full tunnel are such.
    pub outer_uses_conntrack: bool,
    /// Some rule may look at or set the connection of inner packets.
    pub inner_uses_conntrack: bool,
    /// Some rule may translate addresses of inner packets (masquerade on the tunnel).
    pub inner_translated: bool,
    /// Some rule may clamp the segment size of TCP connections that are forwarded out of the tunnel.
    pub clamps_mss_in: bool,
    /// Some rule may clamp the segment size of TCP connections that are forwarded into the tunnel.
    pub clamps_mss_out: bool,
    /// A flow table works on the tunnel's interface.
    pub in_flowtable: bool,
}

/// A tunnel, as the packet filter may know it.
pub(crate) struct Subject {
    pub(crate) interface: [String; 1],
    /// Interfaces its outer packets may take; none = not known.
    pub(crate) outer_interfaces: Vec<String>,
    pub(crate) listen_port: Option<u16>,
    pub(crate) fwmark: u32,
    /// Families of its endpoints.
    pub(crate) outer_ipv4: bool,
    pub(crate) outer_ipv6: bool,
}

/// Leads a tunnel's packets through the rules.
pub(crate) fn of_tunnel(rules: &Ruleset<'_>, subject: &Subject) -> TunnelFilter {
    let tunnel = Interface::OneOf(&subject.interface);
    // From one peer to another a packet is an inner one both in and out; here each is looked at for itself.
    let elsewhere = Interface::Other(&subject.interface);
    let outer = match &subject.outer_interfaces[..] {
        [] => Interface::Any,
        names => Interface::OneOf(names),
    };
    let inner = Packet {
        from: Interface::Any,
        to: Interface::Any,
        ipv6: false,
        udp: false,
        source_port: None,
        destination_port: None,
        mark: None,
        state: None,
    };
    let both_families = [false, true];
    let outer_families: Vec<bool> = both_families
        .into_iter()
        .filter(|ipv6| {
            if *ipv6 {
                subject.outer_ipv6
            } else {
                subject.outer_ipv4
            }
        })
        .collect();
    let outer_in = lead(
        rules,
        &outer_families,
        &["ingress", "prerouting", "input"],
        |_| Packet {
            from: outer,
            to: Interface::None,
            udp: true,
            destination_port: subject.listen_port,
            ..inner
        },
    );
    let outer_out = lead(
        rules,
        &outer_families,
        &["output", "postrouting", "egress"],
        |_| Packet {
            from: Interface::None,
            to: outer,
            udp: true,
            source_port: subject.listen_port,
            mark: Some(subject.fwmark),
            ..inner
        },
    );
    let hooks = ["ingress", "prerouting", "input", "forward"];
    let inner_in = lead(rules, &both_families, &hooks, |hook| Packet {
        from: tunnel,
        to: if hook == "forward" {
            elsewhere
        } else {
            Interface::None
        },
        ..inner
    });
    let hooks = ["forward", "output", "postrouting", "egress"];
    let inner_out = lead(rules, &both_families, &hooks, |hook| Packet {
        from: match hook {
            "output" => Interface::None,
            "forward" => elsewhere,
            _ => Interface::Any,
        },
        to: tunnel,
        ..inner
    });
    TunnelFilter {
        outer_untracked: known(outer_in.untracked.and(outer_out.untracked)),
        inner_untracked: known(inner_in.untracked.and(inner_out.untracked)),
        outer_uses_conntrack: outer_in.uses_conntrack || outer_out.uses_conntrack,
        inner_uses_conntrack: inner_in.uses_conntrack || inner_out.uses_conntrack,
        inner_translated: inner_in.translated || inner_out.translated,
        clamps_mss_in: inner_in.clamps_mss,
        clamps_mss_out: inner_out.clamps_mss,
        in_flowtable: rules.flowtables.values().any(|devices| {
            devices
                .iter()
                .any(|device| subject.interface.contains(device))
        }),
        outer_in: outer_in.rules,
        outer_out: outer_out.rules,
        inner_in: inner_in.rules,
        inner_out: inner_out.rules,
    }
}

fn known(truth: Truth) -> Known<bool> {
    match truth {
        Truth::Yes => Known::Value(true),
        Truth::No => Known::Value(false),
        Truth::Maybe => Known::because(
            "a rule may do it for some packets; of iptables' target CT nft does not tell the options",
        ),
    }
}

/// The most rules of each family's way, and what any of them does; untracked only where every family is.
fn lead<'a>(
    rules: &Ruleset<'_>,
    families: &[bool],
    hooks: &[&str],
    packet_at: impl Fn(&str) -> Packet<'a>,
) -> Fate {
    let mut all = Fate::default();
    let mut untracked: Option<Truth> = None;
    for ipv6 in families {
        let of_family = |hook: &str| Packet {
            ipv6: *ipv6,
            ..packet_at(hook)
        };
        for (hook, count) in Way::new(rules, true).lead(hooks, of_family).rules {
            let most = all.rules.entry(hook).or_default();
            *most = count.max(*most);
        }
        let found = Way::new(rules, false).lead(hooks, of_family);
        untracked = Some(untracked.map_or(found.untracked, |others| others.and(found.untracked)));
        all.uses_conntrack |= found.uses_conntrack;
        all.translated |= found.translated;
        all.clamps_mss |= found.clamps_mss;
    }
    all.untracked = untracked.unwrap_or_default();
    all
}

#[cfg(test)]
mod tests {
    use crate::firewall::parse;
    use crate::firewall_walk::MOST_JUMPS;

    use super::*;

    /// Made and listed by nft 1.0.6: a gateway with a host's filter, NAT into the tunnel, NOTRACK for the outer port
    /// and the rules of wg-quick for a full tunnel.
    const GATEWAY: &[u8] = include_bytes!("../tests/recorded/nft_gateway.json");
    /// Made by iptables-nft 1.8.9, listed by nft 1.0.6.
    const IPTABLES: &[u8] = include_bytes!("../tests/recorded/nft_iptables.json");

    fn filter(ruleset: &[u8], change: impl Fn(&mut Subject)) -> TunnelFilter {
        let mut subject = Subject {
            interface: ["wg0".to_owned()],
            outer_interfaces: vec!["d0".to_owned()],
            listen_port: Some(51820),
            fwmark: 51820,
            outer_ipv4: true,
            outer_ipv6: false,
        };
        change(&mut subject);
        let firewall = parse(ruleset, &[subject]).unwrap();
        firewall.tunnels["wg0"].clone()
    }

    fn counts(rows: &[(&str, usize)]) -> BTreeMap<String, usize> {
        rows.iter()
            .map(|(hook, rules)| ((*hook).to_owned(), *rules))
            .collect()
    }

    #[test]
    fn rules_count_up_to_the_one_that_decides() {
        let filter = filter(GATEWAY, |_| {});
        // Untracked: the rule for established flows decides nothing, the third accepts by port.
        let outer_in = [("ingress", 1), ("prerouting", 4), ("input", 3)];
        assert_eq!(filter.outer_in, counts(&outer_in));
        let outer_out = [("output", 2), ("postrouting", 1)];
        assert_eq!(filter.outer_out, counts(&outer_out));
        // Tracked: the second rule accepts what is established.
        // (This nft does not tell which device the ingress chain belongs to.)
        let inner_in = [
            ("ingress", 1),
            ("prerouting", 4),
            ("input", 2),
            ("forward", 3),
        ];
        assert_eq!(filter.inner_in, counts(&inner_in));
    }

    #[test]
    fn what_rules_may_do_to_a_tunnel_is_told() {
        let filter = filter(GATEWAY, |_| {});
        assert_eq!(filter.outer_untracked, Known::Value(true));
        assert!(filter.outer_uses_conntrack, "wg-quick's marks");
        assert!(filter.inner_uses_conntrack && filter.inner_translated);
        assert!(filter.clamps_mss_in && filter.clamps_mss_out);
        assert!(!filter.in_flowtable);
    }

    #[test]
    fn another_tunnel_is_not_concerned() {
        let filter = filter(GATEWAY, |subject| {
            subject.listen_port = Some(40000);
            subject.fwmark = 0;
            subject.outer_ipv4 = false;
            subject.outer_ipv6 = true;
        });
        assert_eq!(filter.outer_untracked, Known::Value(false));
        // `fwmark` 0 is no mark, and the table of wg-quick is one of IPv4.
        assert_eq!(filter.outer_out, counts(&[("output", 2)]));
        assert_eq!(filter.outer_in["input"], 2);
    }

    #[test]
    fn rules_of_iptables_say_less() {
        let filter = filter(IPTABLES, |_| {});
        let outer_in = [("prerouting", 3), ("input", 1)];
        assert_eq!(filter.outer_in, counts(&outer_in));
        assert!(
            matches!(&filter.outer_untracked, Known::Value(false)),
            "nothing on the way out"
        );
        assert!(filter.outer_uses_conntrack && filter.inner_uses_conntrack);
        assert!(filter.inner_translated);
        assert!(filter.clamps_mss_out && !filter.clamps_mss_in);
    }

    #[test]
    fn jumps_are_followed_as_far_as_the_kernel_does() {
        let chain = |name: &str, hook: Option<&str>| serde_json::json!({"chain": {"family": "inet", "table": "t", "name": name, "hook": hook, "type": "filter", "prio": 0}});
        let jump = |chain: &str, verdict: &str, target: &str| serde_json::json!({"rule": {"family": "inet", "table": "t", "chain": chain, "expr": [{verdict: {"target": target}}]}});
        let mut objects = vec![chain("c0", Some("input"))];
        for number in 0..10_000 {
            let verdict = if number % 2 == 0 { "jump" } else { "goto" };
            objects.push(jump(
                &format!("c{number}"),
                verdict,
                &format!("c{}", number + 1),
            ));
        }
        // A circle, too.
        objects.push(jump("c3", "jump", "c1"));
        let ruleset = serde_json::json!({"nftables": objects}).to_string();
        let filter = filter(ruleset.as_bytes(), |_| {});
        assert_eq!(filter.outer_in["input"], MOST_JUMPS);
    }

    #[test]
    fn a_flow_table_is_found_by_its_devices() {
        let ruleset = br#"{"nftables": [{"flowtable": {"family": "inet", "name": "ft", "table": "t", "hook": "ingress", "prio": 0, "dev": ["eth0", "wg0"]}}]}"#;
        assert!(filter(ruleset, |_| {}).in_flowtable);
        let one = br#"{"nftables": [{"flowtable": {"family": "inet", "name": "ft", "table": "t", "dev": "eth0"}}]}"#;
        assert!(!filter(one, |_| {}).in_flowtable);
    }
}
