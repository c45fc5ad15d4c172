//! The packet filter in a few figures, from `nft --json list ruleset`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::firewall_walk::{clamps_mss, translates, uses_conntrack};
use crate::firewall_way::{Subject, of_tunnel};
use crate::{Firewall, child, files};

/// Four thousand rules take 0.7 s, and where rules are many the processor may be busy.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of one rule set in JSON (a rule takes about 500).
const SIZE_LIMIT: usize = 32 << 20;
/// Tunnels whose packets are led through the rules.
const MOST_TUNNELS: usize = 16;

/// The rule set of this network namespace in JSON. Rules made with the old `iptables-legacy` do not show in it
/// (see [`understand`]).
pub(crate) fn read() -> Result<Vec<u8>, String> {
    child::output(
        "nft",
        &["--json", "list", "ruleset"],
        TIME_LIMIT,
        SIZE_LIMIT,
    )
    .map_err(|error| error.to_string())
}

/// What nft listed, and whether the calling thread's network namespace has tables that nft does not list.
pub(crate) fn understand(json: &[u8], tunnels: &[Subject]) -> Result<Firewall, String> {
    // Names the tables of `iptables-legacy` alone, for root only: `iptables-nft` makes tables of nftables.
    let has_tables = |family: &str| {
        files::text(format!("/proc/thread-self/net/{family}_tables_names"))
            .is_ok_and(|names| !names.trim().is_empty())
    };
    Ok(Firewall {
        legacy: ["ip", "ip6"].into_iter().any(has_tables),
        ..parse(json, tunnels)?
    })
}

/// Family, table and name.
pub(crate) type ChainName<'a> = (&'a str, &'a str, &'a str);

/// The rules in an order to walk through.
#[derive(Default)]
pub(crate) struct Ruleset<'a> {
    pub(crate) chains: BTreeMap<ChainName<'a>, Chain<'a>>,
    /// Name to devices.
    pub(crate) flowtables: BTreeMap<String, Vec<String>>,
}

#[derive(Default)]
pub(crate) struct Chain<'a> {
    pub(crate) hook: Option<&'a str>,
    /// `filter`, `nat` or `route`.
    pub(crate) kind: Option<&'a str>,
    pub(crate) devices: Vec<&'a str>,
    pub(crate) rules: Vec<&'a Value>,
    priority: i64,
    /// Chains its rules jump to, in the same table.
    jumps: BTreeSet<&'a str>,
}

impl<'a> Ruleset<'a> {
    /// The base chains of a hook in the order the kernel calls them.
    pub(crate) fn base_chains(&self, hook: &str) -> Vec<(ChainName<'a>, &Chain<'a>)> {
        let mut chains: Vec<_> = self
            .chains
            .iter()
            .filter(|(_, chain)| chain.hook == Some(hook))
            .map(|(name, chain)| (*name, chain))
            .collect();
        chains.sort_by_key(|(_, chain)| chain.priority);
        chains
    }
}

/// Counts rules per hook: those of the hook's chains and of every chain they lead to, each chain once per hook. Then
/// leads the packets of each tunnel through them.
pub(crate) fn parse(json: &[u8], tunnels: &[Subject]) -> Result<Firewall, String> {
    let document: Value = serde_json::from_slice(json)
        .map_err(|error| format!("nft's rule set is not JSON: {error}"))?;
    let objects = document["nftables"]
        .as_array()
        .ok_or("nft's rule set has no list named nftables")?;
    let mut rules = Ruleset::default();
    let mut firewall = Firewall::default();
    for object in objects {
        if let Some(chain) = object.get("chain") {
            let entry = rules.chains.entry(name(chain, "name")).or_default();
            entry.hook = chain["hook"].as_str();
            entry.kind = chain["type"].as_str();
            entry.priority = chain["prio"].as_i64().unwrap_or(0);
            entry.devices = words(&chain["dev"]).collect();
        } else if let Some(flowtable) = object.get("flowtable") {
            let devices = words(&flowtable["dev"]).map(str::to_owned).collect();
            let name = text(flowtable, "name").to_owned();
            rules.flowtables.insert(name, devices);
        } else if let Some(rule) = object.get("rule") {
            let chain = rules.chains.entry(name(rule, "chain")).or_default();
            chain.rules.push(rule);
            let statements = rule["expr"].as_array();
            firewall.uses_conntrack |= statements.into_iter().flatten().any(uses_conntrack);
            look_at(&rule["expr"], chain, &mut firewall);
        }
    }
    for (name, chain) in &rules.chains {
        if let Some(hook) = chain.hook {
            *firewall.rules_per_hook.entry(hook.to_owned()).or_default() +=
                rules_from(*name, &rules.chains);
        }
    }
    for tunnel in tunnels.iter().take(MOST_TUNNELS) {
        let [name] = &tunnel.interface;
        let filter = of_tunnel(&rules, tunnel);
        firewall.tunnels.insert(name.clone(), filter);
    }
    firewall.flowtables = rules.flowtables;
    Ok(firewall)
}

fn name<'a>(object: &'a Value, key: &str) -> ChainName<'a> {
    (
        text(object, "family"),
        text(object, "table"),
        text(object, key),
    )
}

/// One word, or a list of them.
fn words(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten();
    value
        .as_str()
        .into_iter()
        .chain(list.filter_map(Value::as_str))
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// Looks for jumps, address translation and segment size clamping anywhere in a rule (verdict maps nest them). The
/// depth is bounded by the JSON parser's own limit.
fn look_at<'a>(expression: &'a Value, chain: &mut Chain<'a>, firewall: &mut Firewall) {
    firewall.translates |= translates(expression);
    firewall.clamps_mss |= clamps_mss(expression);
    match expression {
        Value::Array(items) => {
            for item in items {
                look_at(item, chain, firewall);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                if matches!(key.as_str(), "jump" | "goto") {
                    chain.jumps.extend(value["target"].as_str());
                }
                look_at(value, chain, firewall);
            }
        }
        _ => {}
    }
}

fn rules_from(start: ChainName, chains: &BTreeMap<ChainName, Chain>) -> usize {
    let (family, table, name) = start;
    let mut seen = BTreeSet::new();
    let mut ahead = vec![name];
    let mut rules = 0;
    while let Some(name) = ahead.pop() {
        if let Some(chain) = chains.get(&(family, table, name))
            && seen.insert(name)
        {
            rules += chain.rules.len();
            ahead.extend(&chain.jumps);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_behind_jumps_count_for_the_hook() {
        let rule = |chain: &str, expr: Value| json!({"rule": {"family": "inet", "table": "t", "chain": chain, "expr": expr}});
        let ruleset = json!({"nftables": [
            {"metainfo": {"json_schema_version": 1}},
            {"table": {"family": "inet", "name": "t"}},
            {"chain": {"family": "inet", "table": "t", "name": "in", "type": "filter", "hook": "input"}},
            {"chain": {"family": "inet", "table": "t", "name": "fwd", "type": "filter", "hook": "forward"}},
            {"chain": {"family": "inet", "table": "t", "name": "post", "type": "nat", "hook": "postrouting"}},
            {"chain": {"family": "inet", "table": "t", "name": "more"}},
            rule("in", json!([{"vmap": {"key": {"meta": {"key": "iif"}}, "data": {"set": [["lo", {"jump": {"target": "more"}}]]}}}])),
            rule("more", json!([{"goto": {"target": "more"}}])),
            rule("more", json!([{"accept": null}])),
            rule("fwd", json!([{"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": {"rt": {"key": "mtu"}}}}])),
            rule("post", json!([{"masquerade": null}])),
        ]});
        let firewall = parse(ruleset.to_string().as_bytes(), &[]).unwrap();
        let expected: BTreeMap<String, usize> = [("input", 3), ("forward", 1), ("postrouting", 1)]
            .map(|(hook, rules)| (hook.to_owned(), rules))
            .into();
        assert_eq!(firewall.rules_per_hook, expected);
        assert!(firewall.clamps_mss && firewall.translates);
    }

    #[test]
    fn an_empty_ruleset_is_no_firewall() {
        let empty = br#"{"nftables": [{"metainfo": {"version": "1.0.6"}}]}"#;
        assert_eq!(parse(empty, &[]), Ok(Firewall::default()));
    }

    #[test]
    fn iptables_rules_are_understood() {
        let ruleset = json!({"nftables": [
            {"chain": {"family": "ip", "table": "nat", "name": "POSTROUTING", "hook": "postrouting"}},
            {"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "expr": [{"xt": {"type": "target", "name": "MASQUERADE"}}]}},
            {"rule": {"family": "ip", "table": "mangle", "chain": "FORWARD", "expr": [{"xt": {"type": "target", "name": "TCPMSS"}}]}},
        ]});
        let firewall = parse(ruleset.to_string().as_bytes(), &[]).unwrap();
        assert!(firewall.clamps_mss && firewall.translates);
    }

    fn subject() -> Subject {
        Subject {
            interface: ["wg0".to_owned()],
            outer_interfaces: vec!["d0".to_owned()],
            listen_port: Some(51820),
            fwmark: 51820,
            outer_ipv4: true,
            outer_ipv6: true,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let name = prop_oneof![
            Just("chain".to_owned()),
            Just("rule".to_owned()),
            Just("expr".to_owned()),
            Just("jump".to_owned()),
            Just("target".to_owned()),
            Just("name".to_owned()),
            Just("hook".to_owned()),
            "[a-z]{1,6}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            name.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((name.clone(), inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&bytes, &[subject()]);
        }

        #[test]
        fn any_objects_are_read(objects in proptest::collection::vec(any_json(), 0..8)) {
            let ruleset = json!({"nftables": objects}).to_string();
            prop_assert!(parse(ruleset.as_bytes(), &[subject()]).is_ok());
        }
    }
}
