//! What the packet filter does with a tunnel's packets.
//!
//! Four kinds of packets are led through the hooks they pass: outer ones in and out, inner ones in and out. Each is
//! led twice: as one of an established flow, to count the rules most packets are compared with; and as one of
//! which the connection's state is not known, to find every rule that may have an effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Known;
use crate::firewall::{Chain, ChainName, Ruleset};
use crate::firewall_match::{Interface, Packet, Truth};

/// What the packet filter means for one tunnel.
///
/// Rules are counted that a packet of an established flow may have to be compared with, up to the first that
/// certainly decides; jumps that such a packet cannot take are not followed, and chains of the type `nat` do not
/// count, since only the first packet of a flow sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// What happened to one packet on its way.
#[derive(Default)]
struct Fate {
    rules: BTreeMap<String, usize>,
    untracked: Truth,
    uses_conntrack: bool,
    translated: bool,
    clamps_mss: bool,
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

/// One packet on its way.
struct Way<'a, 'b> {
    rules: &'a Ruleset<'b>,
    /// It belongs to an established flow; otherwise that is not known.
    established: bool,
    fate: Fate,
    /// Some rule may have changed its mark.
    marked: bool,
    /// Chains already walked from this base chain, and whether each certainly decides.
    walked: BTreeMap<ChainName<'b>, bool>,
}

/// What becomes of a packet after a rule.
#[derive(PartialEq, Eq)]
enum Step {
    /// The next rule.
    Next,
    /// The chain is left, without a decision.
    Left,
    /// It was certainly accepted or dropped.
    Decided,
}

impl<'b> Way<'_, 'b> {
    fn new<'a>(rules: &'a Ruleset<'b>, established: bool) -> Way<'a, 'b> {
        Way {
            rules,
            established,
            fate: Fate::default(),
            marked: false,
            walked: BTreeMap::new(),
        }
    }

    fn lead<'p>(mut self, hooks: &[&str], packet_at: impl Fn(&str) -> Packet<'p>) -> Fate {
        for hook in hooks {
            let packet = packet_at(hook);
            for (name, chain) in self.rules.base_chains(hook) {
                let only_first_packets = chain.kind == Some("nat");
                if meets(name, chain, &packet) && !(self.established && only_first_packets) {
                    self.walked.clear();
                    let rules = self.walk(hook, name, &packet, 0).1;
                    if rules > 0 {
                        *self.fate.rules.entry((*hook).to_owned()).or_default() += rules;
                    }
                }
            }
        }
        self.fate
    }

    /// Does the chain certainly accept or drop the packet, and how many rules are newly met in it and behind it?
    fn walk(
        &mut self,
        hook: &str,
        name: ChainName<'b>,
        packet: &Packet<'_>,
        depth: usize,
    ) -> (bool, usize) {
        if let Some(decides) = self.walked.get(&name) {
            return (*decides, 0);
        }
        // A chain that leads back to itself decides nothing there.
        self.walked.insert(name, false);
        let rules = self.rules;
        let Some(chain) = rules.chains.get(&name).filter(|_| depth < MOST_JUMPS) else {
            return (false, 0);
        };
        let mut met = 0;
        for rule in &chain.rules {
            met += 1;
            match self.apply(hook, name, rule, packet, depth, &mut met) {
                Step::Next => {}
                Step::Left => break,
                Step::Decided => {
                    self.walked.insert(name, true);
                    return (true, met);
                }
            }
        }
        (false, met)
    }

    fn apply(
        &mut self,
        hook: &str,
        name: ChainName<'b>,
        rule: &'b Value,
        packet: &Packet<'_>,
        depth: usize,
        met: &mut usize,
    ) -> Step {
        let statements = rule["expr"].as_array().map_or(&[][..], Vec::as_slice);
        let packet = Packet {
            mark: packet.mark.filter(|_| !self.marked),
            state: match self.fate.untracked {
                Truth::Yes => Some("untracked"),
                _ => self.established.then_some("established"),
            },
            ..*packet
        };
        let holds = statements
            .iter()
            .map(|statement| condition(statement, &packet))
            .fold(Truth::Yes, Truth::and);
        if holds == Truth::No {
            return Step::Next;
        }
        for statement in statements {
            self.note(hook, statement, holds);
        }
        for statement in statements {
            let step = match statement.get("vmap") {
                Some(map) => self.look_up(hook, name, map, &packet, (holds, depth), met),
                None => self.judge(hook, name, statement, &packet, (holds, depth), met),
            };
            if step != Step::Next {
                return step;
            }
        }
        Step::Next
    }

    /// A verdict map: each entry that may be the packet's.
    fn look_up(
        &mut self,
        hook: &str,
        name: ChainName<'b>,
        map: &'b Value,
        packet: &Packet<'_>,
        (holds, depth): (Truth, usize),
        met: &mut usize,
    ) -> Step {
        for entry in map["data"]["set"].as_array().into_iter().flatten() {
            let is_it = packet.matches_key(&map["key"], &entry[0]);
            let holds = holds.and(is_it);
            if holds != Truth::No {
                let step = self.judge(hook, name, &entry[1], packet, (holds, depth), met);
                if step != Step::Next {
                    return step;
                }
            }
            if is_it == Truth::Yes {
                break;
            }
        }
        Step::Next
    }

    fn judge(
        &mut self,
        hook: &str,
        (family, table, _): ChainName<'b>,
        statement: &'b Value,
        packet: &Packet<'_>,
        (holds, depth): (Truth, usize),
        met: &mut usize,
    ) -> Step {
        let Some((verdict, detail)) = statement
            .as_object()
            .and_then(|fields| fields.iter().next())
        else {
            return Step::Next;
        };
        match verdict.as_str() {
            "accept" | "drop" | "reject" | "queue" | "fwd" if holds == Truth::Yes => Step::Decided,
            "return" if holds == Truth::Yes => Step::Left,
            "jump" | "goto" => {
                let target = detail["target"].as_str().unwrap_or_default();
                let (decides, behind) = self.walk(hook, (family, table, target), packet, depth + 1);
                *met += behind;
                match (holds, decides, verdict.as_str()) {
                    (Truth::Yes, true, _) => Step::Decided,
                    (Truth::Yes, false, "goto") => Step::Left,
                    _ => Step::Next,
                }
            }
            _ => Step::Next,
        }
    }

    /// What a statement does, or may do, to the packet and its connection.
    fn note(&mut self, hook: &str, statement: &Value, holds: Truth) {
        let fate = &mut self.fate;
        if uses_conntrack(statement) {
            fate.uses_conntrack = true;
        }
        if translates(statement) {
            fate.translated = true;
        }
        let passes_forwarded = !matches!(hook, "input" | "output");
        if passes_forwarded && clamps_mss(statement) {
            fate.clamps_mss = true;
        }
        if statement.get("notrack").is_some() {
            fate.untracked = fate.untracked.or(holds);
        } else if statement["xt"]["name"] == "CT" {
            fate.untracked = fate.untracked.or(Truth::Maybe);
        }
        let changed = &statement["mangle"]["key"]["meta"]["key"];
        if changed == "mark"
            || matches!(statement["xt"]["name"].as_str(), Some("MARK" | "CONNMARK"))
        {
            self.marked = true;
        }
    }
}

/// As many jumps as the kernel follows (`NFT_JUMP_STACK_SIZE`).
const MOST_JUMPS: usize = 16;

/// Does a packet pass this base chain?
fn meets((family, _, _): ChainName<'_>, chain: &Chain<'_>, packet: &Packet<'_>) -> bool {
    match family {
        "ip" => !packet.ipv6,
        "ip6" => packet.ipv6,
        "inet" | "netdev" => {
            let link = if chain.hook == Some("egress") {
                packet.to
            } else {
                packet.from
            };
            // nft before 1.0.8 does not tell the device of such a chain.
            chain.devices.is_empty()
                || match link {
                    Interface::None => false,
                    Interface::Any | Interface::Other(_) => true,
                    Interface::OneOf(names) => names
                        .iter()
                        .any(|name| chain.devices.contains(&name.as_str())),
                }
        }
        _ => false,
    }
}

/// Whether a rule goes on after this statement.
fn condition(statement: &Value, packet: &Packet<'_>) -> Truth {
    if let Some(comparison) = statement.get("match") {
        return packet.matches(comparison);
    }
    let fields = statement.as_object();
    let is_condition = fields.is_none_or(|fields| {
        let conditions = ["limit", "quota", "ct count", "meter"];
        conditions.iter().any(|name| fields.contains_key(*name))
            || statement["xt"]["type"] == "match"
    });
    if is_condition {
        Truth::Maybe
    } else {
        Truth::Yes
    }
}

/// Does it look at connections, or set something of them?
pub(crate) fn uses_conntrack(statement: &Value) -> bool {
    let of_xt = [
        "CONNMARK",
        "CONNSECMARK",
        "connbytes",
        "connlabel",
        "connlimit",
        "connmark",
        "conntrack",
        "helper",
        "state",
    ];
    if translates(statement)
        || statement.get("flow").is_some()
        || statement["xt"]["name"]
            .as_str()
            .is_some_and(|name| of_xt.contains(&name))
    {
        return true;
    }
    match statement {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| key == "ct" || key.starts_with("ct ") || uses_conntrack(value)),
        Value::Array(items) => items.iter().any(uses_conntrack),
        _ => false,
    }
}

/// Does it translate addresses?
pub(crate) fn translates(statement: &Value) -> bool {
    ["masquerade", "snat", "dnat", "redirect"]
        .iter()
        .any(|name| statement.get(name).is_some())
        || matches!(
            statement["xt"]["name"].as_str(),
            Some("MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP")
        )
}

/// Does it set the TCP maximum segment size?
pub(crate) fn clamps_mss(statement: &Value) -> bool {
    statement["mangle"]["key"]["tcp option"]["name"] == "maxseg"
        || statement["xt"]["name"] == "TCPMSS"
}

#[cfg(test)]
mod tests {
    use crate::firewall::parse;

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
