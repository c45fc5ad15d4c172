//! A packet's walk through the rules of nft, as far as it can be told.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::firewall::{Chain, ChainName, Ruleset};
use crate::firewall_match::{Interface, Packet, Truth};

/// What happened to one packet on its way.
#[derive(Default)]
pub(crate) struct Fate {
    /// Rules it met, per hook.
    pub(crate) rules: BTreeMap<String, usize>,
    pub(crate) untracked: Truth,
    pub(crate) uses_conntrack: bool,
    pub(crate) translated: bool,
    pub(crate) clamps_mss: bool,
}

/// One packet on its way.
pub(crate) struct Way<'a, 'b> {
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
    pub(crate) fn new<'a>(rules: &'a Ruleset<'b>, established: bool) -> Way<'a, 'b> {
        Way {
            rules,
            established,
            fate: Fate::default(),
            marked: false,
            walked: BTreeMap::new(),
        }
    }

    /// Through these hooks; what is known of the packet may differ from hook to hook.
    pub(crate) fn lead<'p>(
        mut self,
        hooks: &[&str],
        packet_at: impl Fn(&str) -> Packet<'p>,
    ) -> Fate {
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
pub(crate) const MOST_JUMPS: usize = 16;

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
