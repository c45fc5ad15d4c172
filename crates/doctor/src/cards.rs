//! The cards the tunnel's outer packets go through: their interrupts by core, and what their drivers count.

use std::collections::BTreeMap;

use wirespeed_facts::{CountersDelta, EndpointRoute, Facts, Known, Link, LinkDetail};
use wirespeed_words::say;

use crate::losses::Period;
use crate::{End, Evidence};

/// Links of a way that are looked at. A bond has fewer cards, and what a machine tells of itself is not to be believed
/// without end: each of them is looked for among all of its links, and asked about by many checks.
const MOST_LINKS: usize = 64;

/// A network card on the way of the outer packets.
pub(crate) struct Card<'a> {
    pub(crate) name: &'a str,
    pub(crate) detail: &'a LinkDetail,
}

/// The cards of an end of which anything is known.
pub(crate) fn of(evidence: &Evidence, end: End) -> Vec<Card<'_>> {
    let links = links(evidence, end).into_iter();
    links
        .filter_map(|link| {
            Some(Card {
                name: &link.name,
                detail: link.detail.value()?,
            })
        })
        .collect()
}

/// The cards of an end of which something is not known, and why: nothing behind the link, or what `part` says.
pub(crate) fn unknown(
    evidence: &Evidence,
    end: End,
    part: impl Fn(&Card<'_>) -> Option<String>,
) -> Vec<(&str, String)> {
    let links = links(evidence, end).into_iter();
    links
        .filter_map(|link| {
            let name = link.name.as_str();
            let because = match &link.detail {
                Known::Unknown(because) => because.clone(),
                Known::Value(detail) => part(&Card { name, detail })?,
            };
            Some((name, because))
        })
        .collect()
}

/// The links of an end's cards. One with a kind (`veth`, `vlan`, `bond` …) is none: those below it are.
fn links(evidence: &Evidence, end: End) -> Vec<&Link> {
    let mut cards: Vec<&Link> = Vec::new();
    for link in outer_links(evidence, end) {
        let is_card = link.kind.is_none() && link.name != "lo";
        if is_card && cards.iter().all(|known| known.name != link.name) {
            cards.push(link);
        }
    }
    cards
}

/// Why a part of a card is not known.
pub(crate) fn why<T>(part: &Known<T>) -> Option<String> {
    match part {
        Known::Unknown(because) => Some(because.clone()),
        Known::Value(_) => None,
    }
}

/// The route of this tunnel's packets to this peer; `None` where it is not known, or depends on a firewall mark.
pub(crate) fn route(evidence: &Evidence, end: End) -> Option<&EndpointRoute> {
    let endpoint = evidence.peer_at(end)?.endpoint?.ip().to_canonical();
    let mut routes = evidence
        .facts(end)?
        .routes
        .iter()
        .filter(|route| !route.inside && route.to.to_canonical() == endpoint);
    let first = routes.next()?;
    // Another tunnel to the same address may have another mark, and another way.
    routes
        .all(|other| other.interface == first.interface)
        .then_some(first)
}

/// The links this tunnel's packets take to this peer, in the order they pass them. The machine's other tunnels and peers
/// may have others; where the route is not known, a machine with one tunnel has all of its outer links on the way.
pub(crate) fn outer_links(evidence: &Evidence, end: End) -> Vec<&Link> {
    let Some(facts) = evidence.facts(end) else {
        return Vec::new();
    };
    match route(evidence, end).and_then(|route| route.interface.value()) {
        Some(first) => with_those_below(facts, first),
        None if facts.tunnels.len() > 1 => Vec::new(),
        None => outer_names(facts)
            .filter_map(|name| facts.link(name))
            .collect(),
    }
}

/// Names of the links that the packets of any of the machine's tunnels take.
pub(crate) fn outer_names(facts: &Facts) -> impl Iterator<Item = &str> {
    let names = facts.outer_links.iter().take(MOST_LINKS);
    names.map(String::as_str)
}

/// The parent of a VLAN or of an outer tunnel, and the cards of a bond or bridge; as `facts` finds them for all tunnels.
fn with_those_below<'a>(facts: &'a Facts, first: &str) -> Vec<&'a Link> {
    let mut way: Vec<&Link> = Vec::new();
    let mut ahead: Vec<&Link> = facts.link(first).into_iter().collect();
    // Links of one name, and those in a circle, count as often as they are met.
    for _ in 0..MOST_LINKS {
        let Some(link) = ahead.pop() else {
            break;
        };
        if way.iter().any(|known| known.name == link.name) {
            continue;
        }
        way.push(link);
        ahead.extend(facts.links.iter().filter(|below| {
            let is_card = below.master.as_ref() == Some(&link.name)
                && matches!(below.kind.as_deref(), None | Some("bond" | "vlan"));
            link.parent.as_ref() == Some(&below.name) || is_card
        }));
    }
    way
}

impl Card<'_> {
    /// Why it is not known which cores its interrupts went to in any of these periods. Some cards have none of their own.
    pub(crate) fn interrupts_unknown(&self, periods: &[Period<'_>]) -> Option<String> {
        let own = match &self.detail.interrupts {
            Known::Unknown(because) => return Some(because.clone()),
            Known::Value(own) => own,
        };
        let mut periods = periods.iter();
        let known =
            own.is_empty() || periods.any(|one| self.interrupts_by_core(&one.readings).is_some());
        (!known).then(|| say!("doctor-interrupts-not-counted"))
    }

    /// How often its interrupts came, by core in the order of the cores' times; `None` when none is known to have come.
    pub(crate) fn interrupts_by_core(&self, readings: &[&CountersDelta]) -> Option<Vec<u64>> {
        let mut sums: Vec<u64> = Vec::new();
        for counts in self.each_interrupt(readings).into_values() {
            sums.resize(sums.len().max(counts.len()), 0);
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
        }
        sums.iter().any(|count| *count > 0).then_some(sums)
    }

    /// The same for each of its interrupts that came, by number.
    pub(crate) fn each_interrupt(&self, readings: &[&CountersDelta]) -> BTreeMap<u32, Vec<u64>> {
        let mut sums: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for interrupt in self.detail.interrupts.value().into_iter().flatten() {
            for counts in readings
                .iter()
                .filter_map(|reading| reading.interrupts.get(&interrupt.number.to_string()))
            {
                let sum = sums.entry(interrupt.number).or_default();
                sum.resize(sum.len().max(counts.len()), 0);
                for (sum, count) in sum.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        sums
    }
}

/// The number of each core, in the order of the cores' times. Where the machine's nodes do not tell as many, they are
/// counted from 0.
pub(crate) fn core_numbers(facts: &Facts, count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = facts
        .hardware
        .numa_nodes
        .value()
        .into_iter()
        .flatten()
        .flat_map(|node| node.cores.iter().copied())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() == count {
        numbers
    } else {
        (0..count)
            .filter_map(|core| u32::try_from(core).ok())
            .collect()
    }
}

/// Cores as a list like `0-3,8`.
pub(crate) fn list(cores: &[u32]) -> String {
    let mut cores = cores.to_vec();
    cores.sort_unstable();
    cores.dedup();
    cores
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Parts that add up to more than can be counted count as the most.
pub(crate) fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::IpAddr;

    use wirespeed_facts::{EndpointRoute, Known, Link, LinkDetail, Tunnel};

    use super::{MOST_LINKS, of, outer_links};
    use crate::testing::{facts_of, healthy, nothing};
    use crate::{End, Evidence};

    fn card(name: &str, master: Option<&str>) -> Link {
        Link {
            name: name.to_owned(),
            master: master.map(str::to_owned),
            detail: Known::Value(LinkDetail::default()),
            ..Link::default()
        }
    }

    /// The way out to an endpoint; the peer of made-up evidence is 192.0.2.1.
    pub(crate) fn route(to: [u8; 4], interface: &str) -> EndpointRoute {
        EndpointRoute {
            to: IpAddr::from(to),
            inside: false,
            interface: Known::Value(interface.to_owned()),
            gateway: None,
            source: None,
            mtu: Some(1500),
            congestion_control: None,
        }
    }

    /// A machine with a second tunnel, whose packets leave by eth1; those of the one in question by a bond of eth0.
    pub(crate) fn two_tunnels() -> Evidence {
        let mut evidence = healthy();
        let facts = facts_of(&mut evidence, End::Here);
        let other = Tunnel {
            name: "wg7".to_owned(),
            ..facts.tunnels[0].clone()
        };
        facts.tunnels.push(other);
        facts.links.push(card("eth1", None));
        facts.links.push(card("eth0", Some("bond0")));
        facts.links.push(Link {
            kind: Some("bond".to_owned()),
            ..card("bond0", None)
        });
        facts.outer_links = ["eth1", "bond0", "eth0"].map(str::to_owned).to_vec();
        facts.routes = vec![
            route([198, 51, 100, 7], "eth1"),
            route([192, 0, 2, 1], "bond0"),
        ];
        evidence
    }

    fn names(evidence: &Evidence) -> Vec<&str> {
        of(evidence, End::Here)
            .iter()
            .map(|card| card.name)
            .collect()
    }

    #[test]
    fn the_card_of_another_tunnel_is_none_of_this_one() {
        let mut evidence = two_tunnels();
        assert_eq!(names(&evidence), ["eth0"]);
        assert_eq!(outer_links(&evidence, End::Here)[0].name, "bond0");
        evidence.here.routes.pop();
        assert_eq!(names(&evidence), [""; 0]);
        evidence.here.tunnels.pop();
        assert_eq!(names(&evidence), ["eth1", "eth0"]);
    }

    #[test]
    fn two_ways_to_one_address_are_no_known_way() {
        let mut evidence = two_tunnels();
        evidence.here.routes[0].to = evidence.here.routes[1].to;
        assert_eq!(names(&evidence), [""; 0]);
    }

    #[test]
    fn links_in_a_circle_end() {
        let mut evidence = two_tunnels();
        for link in &mut evidence.here.links {
            link.parent = Some("bond0".to_owned());
        }
        assert_eq!(names(&evidence), ["eth0"]);
    }

    /// A way that a hostile machine tells of: as many links, each below the one before.
    fn endless(count: usize) -> Evidence {
        let mut evidence = two_tunnels();
        let facts = facts_of(&mut evidence, End::Here);
        facts.links.extend((0..count).map(|number| Link {
            parent: Some(format!("link{}", number + 1)),
            addresses: vec!["198.51.100.1/24".to_owned()],
            up: true,
            forwards_ipv4: Some(true),
            mtu: 9000,
            ..card(&format!("link{number}"), None)
        }));
        facts.routes = vec![route([192, 0, 2, 1], "link0")];
        evidence
    }

    #[test]
    fn a_way_without_end_is_followed_for_a_while() {
        let mut evidence = endless(20_000);
        let way = outer_links(&evidence, End::Here);
        assert_eq!(way.len(), MOST_LINKS);
        assert_eq!((&*way[0].name, &*way[63].name), ("link0", "link63"));
        nothing(&evidence);
        let facts = facts_of(&mut evidence, End::Here);
        facts.tunnels.pop();
        facts.routes.clear();
        facts.outer_links = (0..20_000).map(|number| format!("link{number}")).collect();
        assert_eq!(outer_links(&evidence, End::Here).len(), MOST_LINKS);
        nothing(&evidence);
        // Nor does a name that nobody has cost a search each.
        facts_of(&mut evidence, End::Here).outer_links = vec!["none".to_owned(); 20_000];
        assert_eq!(outer_links(&evidence, End::Here).len(), 0);
    }

    #[test]
    fn all_cards_of_a_large_bond_are_on_the_way() {
        let mut evidence = two_tunnels();
        let facts = facts_of(&mut evidence, End::Here);
        facts
            .links
            .extend((2..17).map(|number| card(&format!("eth{number}"), Some("bond0"))));
        assert_eq!(names(&evidence).len(), 16);
    }

    #[test]
    fn links_of_one_name_are_one_link() {
        let mut evidence = endless(0);
        let facts = facts_of(&mut evidence, End::Here);
        let twin = Link {
            parent: Some("link0".to_owned()),
            ..card("link0", None)
        };
        facts.links.extend(vec![twin; 1000]);
        assert_eq!(outer_links(&evidence, End::Here).len(), 1);
    }
}
