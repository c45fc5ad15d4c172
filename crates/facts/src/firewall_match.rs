//! Does an expression of nft hold for a packet of which only some things are known?

use serde_json::Value;

/// An answer that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Truth {
    #[default]
    No,
    Maybe,
    Yes,
}

impl Truth {
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Maybe,
        }
    }

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// By which interface a packet comes or goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Interface<'a> {
    /// By none: it is made or consumed here.
    None,
    /// By any.
    Any,
    /// By another than these.
    Other(&'a [String]),
    /// By one of these.
    OneOf(&'a [String]),
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    pub(crate) from: Interface<'a>,
    pub(crate) to: Interface<'a>,
    pub(crate) ipv6: bool,
    /// It is UDP; otherwise its protocol is not known.
    pub(crate) udp: bool,
    pub(crate) source_port: Option<u16>,
    pub(crate) destination_port: Option<u16>,
    /// Its mark, where that is known.
    pub(crate) mark: Option<u32>,
    /// What `ct state` would say.
    pub(crate) state: Option<&'static str>,
}

/// What is known of one property of a packet.
enum Fact<'a> {
    Unknown,
    /// The packet has no such property: no comparison holds.
    Lacking,
    /// One of these; a protocol by its name and its number.
    Words(Vec<&'a str>),
    Number(u64),
    Interface(Interface<'a>),
}

impl Packet<'_> {
    /// Truth of a `match` statement.
    pub(crate) fn matches(&self, statement: &Value) -> Truth {
        let fact = self.fact(&statement["left"]);
        // Without the property a rule is left, whatever it compares with.
        if matches!(fact, Fact::Lacking) {
            return Truth::No;
        }
        let holds = fact.is(&statement["right"]);
        match statement["op"].as_str() {
            Some("==" | "in") => holds,
            Some("!=") => holds.not(),
            _ => Truth::Maybe,
        }
    }

    /// Truth of one entry of a verdict map.
    pub(crate) fn matches_key(&self, key: &Value, entry: &Value) -> Truth {
        self.fact(key).is(entry)
    }

    fn fact(&self, left: &Value) -> Fact<'_> {
        let ip = if self.ipv6 { "ip6" } else { "ip" };
        if let Some(key) = left["meta"]["key"].as_str() {
            return match key {
                "iif" | "iifname" => Fact::Interface(self.from),
                "oif" | "oifname" => Fact::Interface(self.to),
                "l4proto" if self.udp => Fact::Words(vec!["udp", "17"]),
                "nfproto" if self.ipv6 => Fact::Words(vec!["ipv6", "10"]),
                "nfproto" => Fact::Words(vec!["ipv4", "2"]),
                "protocol" => Fact::Words(vec![ip]),
                "mark" => self
                    .mark
                    .map_or(Fact::Unknown, |mark| Fact::Number(mark.into())),
                _ => Fact::Unknown,
            };
        }
        if left["ct"]["key"] == "state" {
            return self
                .state
                .map_or(Fact::Unknown, |state| Fact::Words(vec![state]));
        }
        let Some(protocol) = find_protocol(left) else {
            return Fact::Unknown;
        };
        let of_other_packets = match protocol {
            "ip" | "ip6" => protocol != ip,
            "icmp" | "tcp" | "sctp" | "dccp" | "esp" | "ah" | "comp" | "icmpv6" | "igmp" => {
                self.udp
            }
            _ => false,
        };
        if of_other_packets {
            return Fact::Lacking;
        }
        let port = |port: Option<u16>| port.map_or(Fact::Unknown, |port| Fact::Number(port.into()));
        match (protocol, left["payload"]["field"].as_str()) {
            ("udp" | "th", Some("sport")) => port(self.source_port),
            ("udp" | "th", Some("dport")) => port(self.destination_port),
            ("ip", Some("protocol")) | ("ip6", Some("nexthdr")) if self.udp => {
                Fact::Words(vec!["udp", "17"])
            }
            _ => Fact::Unknown,
        }
    }
}

impl Fact<'_> {
    /// Is it what the right side of a comparison says?
    fn is(&self, right: &Value) -> Truth {
        let list = right["set"].as_array().or_else(|| right.as_array());
        if let Some(list) = list {
            return list
                .iter()
                .fold(Truth::No, |any, entry| any.or(self.is(entry)));
        }
        // An entry of a set with a time-out or a counter.
        if let Some(value) = right.get("elem").map(|entry| &entry["val"]) {
            return self.is(value);
        }
        // A set by its name: it may change at any time.
        if right.as_str().is_some_and(|text| text.starts_with('@')) {
            return Truth::Maybe;
        }
        match self {
            Self::Unknown | Self::Interface(Interface::Any) => Truth::Maybe,
            Self::Lacking | Self::Interface(Interface::None) => Truth::No,
            Self::Interface(Interface::Other(names)) => match right.as_str() {
                Some(name) if names.iter().any(|other| other == name) => Truth::No,
                _ => Truth::Maybe,
            },
            Self::Words(words) => match (right.as_str(), right.as_u64()) {
                (Some("*"), _) => Truth::Yes,
                (Some(text), _) => words.contains(&text).into(),
                (_, Some(number)) => words.contains(&number.to_string().as_str()).into(),
                _ => Truth::Maybe,
            },
            Self::Number(fact) => {
                let range = right["range"].as_array().map(Vec::as_slice);
                match (right.as_u64(), range) {
                    (Some(number), _) => (*fact == number).into(),
                    (_, Some([first, last])) => match (first.as_u64(), last.as_u64()) {
                        (Some(first), Some(last)) => (first..=last).contains(fact).into(),
                        _ => Truth::Maybe,
                    },
                    _ => Truth::Maybe,
                }
            }
            Self::Interface(Interface::OneOf(names)) => {
                let Some(pattern) = right.as_str() else {
                    return Truth::Maybe;
                };
                let named = names
                    .iter()
                    .filter(|name| match pattern.strip_suffix('*') {
                        Some(start) => name.starts_with(start),
                        None => *name == pattern,
                    })
                    .count();
                if named == 0 {
                    Truth::No
                } else if named == names.len() {
                    Truth::Yes
                } else {
                    Truth::Maybe
                }
            }
        }
    }
}

/// The protocol of the first header field within an expression (`{"&": [{"payload": …}, …]}`).
fn find_protocol(expression: &Value) -> Option<&str> {
    if let Some(protocol) = expression["payload"]["protocol"].as_str() {
        return Some(protocol);
    }
    if expression.get("tcp option").is_some() {
        return Some("tcp");
    }
    match expression {
        Value::Object(fields) => fields.values().find_map(find_protocol),
        Value::Array(items) => items.iter().find_map(find_protocol),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outer(names: &[String]) -> Packet<'_> {
        Packet {
            from: Interface::OneOf(names),
            to: Interface::None,
            ipv6: false,
            udp: true,
            source_port: None,
            destination_port: Some(51820),
            mark: None,
            state: Some("established"),
        }
    }

    /// One match statement; `right` is JSON.
    fn truth(packet: &Packet<'_>, left: &Value, op: &str, right: &str) -> Truth {
        let right: Value = serde_json::from_str(right).unwrap();
        packet.matches(&json!({"op": op, "left": left, "right": right}))
    }

    fn meta(key: &str) -> Value {
        json!({"meta": {"key": key}})
    }

    #[test]
    fn interfaces_match_by_name_and_by_pattern() {
        let names = ["eth0".to_owned()];
        let packet = outer(&names);
        let is = |op: &str, right: &str| truth(&packet, &meta("iifname"), op, right);
        assert_eq!(is("==", r#""eth0""#), Truth::Yes);
        assert_eq!(is("!=", r#""eth0""#), Truth::No);
        assert_eq!(is("==", r#""eth*""#), Truth::Yes);
        assert_eq!(is("==", r#"{"set": ["lo", "wg0"]}"#), Truth::No);
        assert_eq!(is("==", r#""@lan""#), Truth::Maybe);
        assert_eq!(
            truth(&packet, &meta("oifname"), "==", r#""eth0""#),
            Truth::No
        );
        let elsewhere = Packet {
            to: Interface::Other(&names),
            ..packet
        };
        let out = |right| truth(&elsewhere, &meta("oifname"), "==", right);
        assert_eq!(out(r#""eth0""#), Truth::No);
        assert_eq!(out(r#""eth1""#), Truth::Maybe);
        let two = ["eth0".to_owned(), "eth1".to_owned()];
        assert_eq!(
            truth(&outer(&two), &meta("iifname"), "==", r#""eth0""#),
            Truth::Maybe
        );
    }

    #[test]
    fn ports_protocols_and_families_are_known() {
        let names = ["eth0".to_owned()];
        let packet = outer(&names);
        let field = |protocol: &str, field: &str, op: &str, right: &str| {
            let left = json!({"payload": {"protocol": protocol, "field": field}});
            truth(&packet, &left, op, right)
        };
        assert_eq!(field("udp", "dport", "==", "51820"), Truth::Yes);
        let set = r#"{"set": [53, {"range": [51820, 51830]}]}"#;
        assert_eq!(field("udp", "dport", "==", set), Truth::Yes);
        assert_eq!(field("th", "dport", "==", "53"), Truth::No);
        assert_eq!(field("udp", "sport", "==", "53"), Truth::Maybe);
        assert_eq!(field("tcp", "dport", "==", "51820"), Truth::No);
        assert_eq!(field("tcp", "dport", "!=", "22"), Truth::No);
        assert_eq!(field("ip6", "saddr", "==", r#""::1""#), Truth::No);
        assert_eq!(field("ip", "saddr", "==", r#""192.0.2.1""#), Truth::Maybe);
        let flags =
            json!({"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, ["syn", "rst"]]});
        assert_eq!(truth(&packet, &flags, "==", r#""syn""#), Truth::No);
    }

    #[test]
    fn protocol_state_and_mark_are_known_or_not() {
        let names = ["eth0".to_owned()];
        let packet = outer(&names);
        let is = |left: &Value, right: &str| truth(&packet, left, "==", right);
        assert_eq!(
            is(&meta("l4proto"), r#"{"set": ["tcp", "udp"]}"#),
            Truth::Yes
        );
        assert_eq!(is(&meta("l4proto"), "17"), Truth::Yes);
        let state = json!({"ct": {"key": "state"}});
        assert_eq!(is(&state, r#"["established", "related"]"#), Truth::Yes);
        assert_eq!(is(&state, r#""new""#), Truth::No);
        assert_eq!(is(&meta("mark"), "1"), Truth::Maybe);
    }
}
