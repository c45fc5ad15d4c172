//! The packet filter in a few figures, from `nft --json list ruleset`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::{Firewall, Known, child};

const TIME_LIMIT: Duration = Duration::from_secs(2);
/// Most bytes of one rule set in JSON (a rule takes about 500).
const SIZE_LIMIT: usize = 32 << 20;

/// Reads the rule set of this network namespace. Rules made with the old `iptables-legacy` do not show in it.
pub(crate) fn read() -> Known<Firewall> {
    match child::output(
        "nft",
        &["--json", "list", "ruleset"],
        TIME_LIMIT,
        SIZE_LIMIT,
    ) {
        Ok(bytes) => parse(&bytes).into(),
        Err(error) => Known::because(error.to_string()),
    }
}

/// Family, table and name.
type ChainName<'a> = (&'a str, &'a str, &'a str);

#[derive(Default)]
struct Chain<'a> {
    hook: Option<&'a str>,
    rules: usize,
    /// Chains its rules jump to, in the same table.
    jumps: BTreeSet<&'a str>,
}

/// Counts rules per hook: those of the hook's chains and of every chain they lead to, each chain once per hook.
pub(crate) fn parse(json: &[u8]) -> Result<Firewall, String> {
    let document: Value = serde_json::from_slice(json)
        .map_err(|error| format!("nft's rule set is not JSON: {error}"))?;
    let objects = document["nftables"]
        .as_array()
        .ok_or("nft's rule set has no list named nftables")?;
    let mut chains: BTreeMap<ChainName, Chain> = BTreeMap::new();
    let mut firewall = Firewall::default();
    for object in objects {
        if let Some(chain) = object.get("chain") {
            let name = (
                text(chain, "family"),
                text(chain, "table"),
                text(chain, "name"),
            );
            chains.entry(name).or_default().hook = chain["hook"].as_str();
        } else if let Some(rule) = object.get("rule") {
            let name = (
                text(rule, "family"),
                text(rule, "table"),
                text(rule, "chain"),
            );
            let chain = chains.entry(name).or_default();
            chain.rules += 1;
            look_at(&rule["expr"], chain, &mut firewall);
        }
    }
    for (name, chain) in &chains {
        if let Some(hook) = chain.hook {
            *firewall.rules_per_hook.entry(hook.to_owned()).or_default() +=
                rules_from(*name, &chains);
        }
    }
    Ok(firewall)
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// Looks for jumps, address translation and segment size clamping anywhere in a rule (verdict maps nest them).
/// The depth is bounded by the JSON parser's own limit.
fn look_at<'a>(expression: &'a Value, chain: &mut Chain<'a>, firewall: &mut Firewall) {
    match expression {
        Value::Array(items) => {
            for item in items {
                look_at(item, chain, firewall);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "jump" | "goto" => chain.jumps.extend(value["target"].as_str()),
                    "masquerade" | "snat" | "dnat" | "redirect" => firewall.translates = true,
                    "mangle" if value["key"]["tcp option"]["name"] == "maxseg" => {
                        firewall.clamps_mss = true;
                    }
                    // A rule of iptables-nft.
                    "xt" => match value["name"].as_str() {
                        Some("TCPMSS") => firewall.clamps_mss = true,
                        Some("MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP") => {
                            firewall.translates = true;
                        }
                        _ => {}
                    },
                    _ => {}
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
            rules += chain.rules;
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
        let firewall = parse(ruleset.to_string().as_bytes()).unwrap();
        let expected: BTreeMap<String, usize> = [("input", 3), ("forward", 1), ("postrouting", 1)]
            .map(|(hook, rules)| (hook.to_owned(), rules))
            .into();
        assert_eq!(firewall.rules_per_hook, expected);
        assert!(firewall.clamps_mss && firewall.translates);
    }

    #[test]
    fn an_empty_ruleset_is_no_firewall() {
        let empty = br#"{"nftables": [{"metainfo": {"version": "1.0.6"}}]}"#;
        assert_eq!(parse(empty), Ok(Firewall::default()));
    }

    #[test]
    fn iptables_rules_are_understood() {
        let ruleset = json!({"nftables": [
            {"chain": {"family": "ip", "table": "nat", "name": "POSTROUTING", "hook": "postrouting"}},
            {"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "expr": [{"xt": {"type": "target", "name": "MASQUERADE"}}]}},
            {"rule": {"family": "ip", "table": "mangle", "chain": "FORWARD", "expr": [{"xt": {"type": "target", "name": "TCPMSS"}}]}},
        ]});
        let firewall = parse(ruleset.to_string().as_bytes()).unwrap();
        assert!(firewall.clamps_mss && firewall.translates);
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
            let _ = parse(&bytes);
        }

        #[test]
        fn any_objects_are_read(objects in proptest::collection::vec(any_json(), 0..8)) {
            let ruleset = json!({"nftables": objects}).to_string();
            prop_assert!(parse(ruleset.as_bytes()).is_ok());
        }
    }
}
