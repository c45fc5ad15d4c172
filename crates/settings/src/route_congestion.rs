//! TCP congestion control of every route that leaves by an interface (`congctl` of ip-route(8)).
//!
//! Each route is sent back to the kernel byte for byte as it was dumped, with only this one metric changed, so
//! every other attribute stays. Link-local, multicast and multipath routes, and those a router advertised
//! (whose lifetime would be lost), are left alone.
//!
//! Value read: `{"routes": {"inet 10.0.0.0/24 table 254 metric 0 tos 0": "bbr", "…": null}}`. Value written: text (all routes),
//! null (none), or an object as read (those routes, exactly).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::json;
use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::netlink::{
    Attributes, NLM_F_REPLACE, Netlink, RTM_GETROUTE, RTM_NEWROUTE, c_text, push_attribute,
    read_i32, read_u32, text,
};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

const RTMSG: usize = 12;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RTN_UNICAST: u8 = 1;
const RTPROT_RA: u8 = 9;
const RTM_F_CLONED: u32 = 0x200;
/// Flags a route may be written with (`RTNH_F_PERVASIVE`, `RTNH_F_ONLINK`); the others are the kernel's own remarks.
const WRITABLE_FLAGS: u32 = 2 | 4;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_CACHEINFO: u16 = 12;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;
const RTAX_CC_ALGO: u16 = 16;
/// More would not be a tunnel's routes but a router's table.
const MOST_ROUTES: usize = 4096;

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    let routes: BTreeMap<String, Option<String>> = routes(interface)?
        .into_iter()
        .map(|route| (route.name, route.congestion))
        .collect();
    Ok(json!({ "routes": routes }))
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let wanted = Wanted::parse(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "the name of a congestion control (\"bbr\"), null, or {\"routes\": {\"<route>\": name or null}}",
    })?;
    let routes = routes(interface)?;
    if routes.is_empty() && !matches!(wanted, Wanted::Each(_)) {
        return Err(SettingError::NotFound {
            what: format!("a route that leaves by {interface}"),
            hint: format!("see `ip route show dev {interface} table all`"),
        });
    }
    for route in routes {
        if let Some(congestion) = wanted.of(&route.name) {
            route.set(congestion.as_deref())?;
        }
    }
    Ok(())
}

/// Puts every route back that still has a value of `ours`. Says what was found where something else was.
pub(crate) fn restore(
    interface: &str,
    before: &Value,
    ours: &[Value],
) -> Result<Vec<String>, SettingError> {
    let Some(before) = Wanted::parse(before) else {
        return write(interface, before).map(|()| Vec::new());
    };
    let ours: Vec<Wanted> = ours.iter().filter_map(Wanted::parse).collect();
    let mut changed_by_others = Vec::new();
    for route in routes(interface)? {
        let Some(previous) = before.of(&route.name) else {
            continue;
        };
        if &route.congestion == previous {
            continue;
        }
        if ours
            .iter()
            .any(|ours| ours.of(&route.name) == Some(&route.congestion))
        {
            route.set(previous.as_deref())?;
        } else {
            changed_by_others.push(format!(
                "{}: {}",
                route.name,
                route.congestion.as_deref().unwrap_or("none")
            ));
        }
    }
    Ok(changed_by_others)
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    if check_name(interface).is_err() {
        return Vec::new();
    }
    match Wanted::parse(value) {
        Some(Wanted::All(name)) => [4, 6]
            .map(|family| command(interface, family, name.as_deref()))
            .to_vec(),
        Some(Wanted::Each(routes)) => {
            let mut names: Vec<_> = routes.values().cloned().collect();
            names.sort();
            names.dedup();
            match &names[..] {
                [one] => [4, 6]
                    .map(|family| command(interface, family, one.as_deref()))
                    .to_vec(),
                _ => routes
                    .iter()
                    .map(|(route, name)| {
                        format!("# {route}: congctl {}", name.as_deref().unwrap_or("none"))
                    })
                    .collect(),
            }
        }
        None => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-route-congestion", interface = interface)
}

pub(crate) fn persistence(interface: &str, value: &Value) -> String {
    match shell(interface, value).first() {
        Some(command) => say!(
            "settings-route-congestion-persistence",
            command = command,
            interface = interface
        ),
        None => say!("settings-nothing-to-keep"),
    }
}

fn command(interface: &str, family: u8, congestion: Option<&str>) -> String {
    let interface = shell_word(interface);
    let congestion = congestion
        .map(|name| format!(" congctl {name}"))
        .unwrap_or_default();
    format!(
        "ip -{family} route show dev {interface} table all type unicast | sed 's/ congctl [^ ]*//' | \
         while read -r route; do ip -{family} route change $route dev {interface}{congestion}; done"
    )
}

enum Wanted {
    All(Option<String>),
    Each(BTreeMap<String, Option<String>>),
}

impl Wanted {
    fn parse(value: &Value) -> Option<Self> {
        let name = |value: &Value| match value {
            Value::Null => Some(None),
            Value::String(name) => {
                let valid = (1..16).contains(&name.len())
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
                valid.then(|| Some(name.clone()))
            }
            _ => None,
        };
        match value {
            Value::Object(object) => object
                .get("routes")?
                .as_object()?
                .iter()
                .map(|(route, value)| {
                    // The names this knob gives, and no others, may come near a shell.
                    let known = route
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b" .:/".contains(&byte));
                    known.then_some((route.clone(), name(value)?))
                })
                .collect::<Option<_>>()
                .map(Self::Each),
            other => name(other).map(Self::All),
        }
    }

    /// What this route is to have; `None` = it is not spoken of.
    fn of(&self, route: &str) -> Option<&Option<String>> {
        match self {
            Self::All(name) => Some(name),
            Self::Each(each) => each.get(route),
        }
    }
}

struct Route {
    /// Family, prefix, table, metric and type of service: what tells it from every other.
    name: String,
    congestion: Option<String>,
    /// `rtmsg` and attributes as dumped.
    body: Vec<u8>,
}

impl Route {
    fn set(&self, congestion: Option<&str>) -> Result<(), SettingError> {
        if self.congestion.as_deref() == congestion {
            return Ok(());
        }
        let tried = || {
            format!(
                "setting the congestion control of the route {} to {} (is it in net.ipv4.tcp_available_congestion_control?)",
                self.name,
                congestion.unwrap_or("none")
            )
        };
        Netlink::open()?
            .change(RTM_NEWROUTE, NLM_F_REPLACE, &self.request(congestion))
            .map_err(|source| SettingError::system(tried(), source))
    }

    /// The route as it was dumped, with another congestion control.
    fn request(&self, congestion: Option<&str>) -> Vec<u8> {
        let mut request = self.body[..RTMSG].to_vec();
        let flags = read_u32(&request, 8).unwrap_or_default() & WRITABLE_FLAGS;
        request[8..12].copy_from_slice(&flags.to_ne_bytes());
        let attributes = &self.body[RTMSG..];
        let by_nexthop_object = Attributes(attributes).find(RTA_NH_ID).is_some();
        let mut metrics = Vec::new();
        for (kind, payload) in Attributes(attributes) {
            match kind {
                RTA_METRICS => {
                    for (kind, payload) in
                        Attributes(payload).filter(|(kind, _)| *kind != RTAX_CC_ALGO)
                    {
                        push_attribute(&mut metrics, kind, payload);
                    }
                }
                RTA_CACHEINFO => {}
                // The next hop is named by its id alone.
                RTA_OIF | RTA_GATEWAY | RTA_VIA if by_nexthop_object => {}
                kind => push_attribute(&mut request, kind, payload),
            }
        }
        if let Some(name) = congestion {
            push_attribute(&mut metrics, RTAX_CC_ALGO, &c_text(name));
        }
        if !metrics.is_empty() {
            push_attribute(&mut request, RTA_METRICS, &metrics);
        }
        request
    }
}

fn routes(interface: &str) -> Result<Vec<Route>, SettingError> {
    let index = link(interface)?.index;
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut request = vec![0_u8; RTMSG];
        request[0] = family;
        Netlink::open()?
            .dump(RTM_GETROUTE, &request, |body| {
                if found.len() <= MOST_ROUTES {
                    found.extend(parse(body, index));
                }
            })
            .map_err(|source| {
                SettingError::system(format!("asking for the routes of {interface}"), source)
            })?;
    }
    if found.len() > MOST_ROUTES {
        return Err(SettingError::Refused {
            setting: describe(interface),
            why: format!(
                "more than {MOST_ROUTES} routes leave by {interface}; set net.ipv4.tcp_congestion_control instead"
            ),
        });
    }
    Ok(found)
}

fn parse(body: &[u8], index: i32) -> Option<Route> {
    let attributes = body.get(RTMSG..)?;
    let (family, prefix_length, tos, protocol, kind) =
        (body[0], body[1], body[3], body[5], body[7]);
    let flags = read_u32(body, 8)?;
    let attribute = |kind| Attributes(attributes).find(kind);
    if kind != RTN_UNICAST || protocol == RTPROT_RA || flags & RTM_F_CLONED != 0 {
        return None;
    }
    if attribute(RTA_OIF).and_then(|payload| read_i32(payload, 0)) != Some(index) {
        return None;
    }
    let (family_name, destination) = match (family, attribute(RTA_DST)) {
        (AF_INET, Some(bytes)) => (
            "inet",
            Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string(),
        ),
        (AF_INET, None) => ("inet", Ipv4Addr::UNSPECIFIED.to_string()),
        (AF_INET6, Some(bytes)) => {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            if address.is_unicast_link_local() || address.is_multicast() {
                return None;
            }
            ("inet6", address.to_string())
        }
        (AF_INET6, None) => ("inet6", Ipv6Addr::UNSPECIFIED.to_string()),
        _ => return None,
    };
    let number = |kind| attribute(kind).and_then(|payload| read_u32(payload, 0));
    let table = number(RTA_TABLE).unwrap_or(u32::from(body[4]));
    let metric = number(RTA_PRIORITY).unwrap_or_default();
    let congestion = attribute(RTA_METRICS)
        .and_then(|metrics| Attributes(metrics).find(RTAX_CC_ALGO))
        .map(text)
        .filter(|name| !name.is_empty());
    Some(Route {
        name: format!(
            "{family_name} {destination}/{prefix_length} table {table} metric {metric} tos {tos}"
        ),
        congestion,
        body: body.to_vec(),
    })
}

/// For the fuzz targets: a route as dumped, and sent back.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn exercise(body: &[u8]) {
    let attributes = body.get(RTMSG..).unwrap_or_default();
    let leaves_by = Attributes(attributes)
        .find(RTA_OIF)
        .and_then(|index| read_i32(index, 0))
        .unwrap_or_default();
    let Some(route) = parse(body, leaves_by) else {
        return;
    };
    for congestion in [None, Some("reno")] {
        let request = route.request(congestion);
        let again = parse(&request, leaves_by);
        let by_nexthop_object = Attributes(attributes).find(RTA_NH_ID).is_some();
        if !by_nexthop_object {
            let again = again.expect("what is sent back is the same route");
            assert_eq!(again.name, route.name);
            assert_eq!(again.congestion.as_deref(), congestion);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumped() -> Vec<u8> {
        let mut body = vec![AF_INET, 24, 0, 0, 254, 3, 0, RTN_UNICAST, 0x10, 0, 0, 0];
        push_attribute(&mut body, RTA_TABLE, &254_u32.to_ne_bytes());
        push_attribute(&mut body, RTA_DST, &[10, 2, 0, 0]);
        let mut metrics = Vec::new();
        push_attribute(&mut metrics, 2, &1300_u32.to_ne_bytes());
        push_attribute(&mut metrics, RTAX_CC_ALGO, &c_text("reno"));
        push_attribute(&mut body, RTA_METRICS, &metrics);
        push_attribute(&mut body, RTA_OIF, &7_i32.to_ne_bytes());
        body
    }

    #[test]
    fn a_route_is_sent_back_with_one_metric_changed() {
        let route = parse(&dumped(), 7).unwrap();
        assert_eq!(route.name, "inet 10.2.0.0/24 table 254 metric 0 tos 0");
        assert_eq!(route.congestion.as_deref(), Some("reno"));
        let changed = parse(&route.request(Some("bbr")), 7).unwrap();
        assert_eq!(
            (changed.name, changed.congestion.as_deref()),
            (route.name.clone(), Some("bbr"))
        );
        let bare = parse(&route.request(None), 7).unwrap();
        assert_eq!(bare.congestion, None);
        let metrics = Attributes(&bare.body[RTMSG..]).find(RTA_METRICS).unwrap();
        assert_eq!(
            read_u32(Attributes(metrics).find(2).unwrap(), 0),
            Some(1300)
        );
        assert_eq!(
            read_u32(&bare.body, 8),
            Some(0),
            "LINKDOWN is not written back"
        );
    }

    #[test]
    fn other_interfaces_and_garbage_are_passed_over() {
        assert!(parse(&dumped(), 8).is_none());
        assert!(parse(&dumped()[..11], 7).is_none());
        assert!(parse(&[0; 12], 7).is_none());
    }

    #[test]
    fn values_name_a_congestion_control() {
        assert!(matches!(
            Wanted::parse(&json!("bbr")),
            Some(Wanted::All(Some(_)))
        ));
        assert!(matches!(
            Wanted::parse(&json!(null)),
            Some(Wanted::All(None))
        ));
        assert!(matches!(
            Wanted::parse(&json!({"routes": {"x": null}})),
            Some(Wanted::Each(_))
        ));
        for bad in [
            json!(""),
            json!("b b"),
            json!(1),
            json!({}),
            json!({"routes": {"x": 1}}),
        ] {
            assert!(Wanted::parse(&bad).is_none(), "{bad}");
        }
        assert!(shell("wg0", &json!("bbr; reboot")).is_empty());
    }
}
