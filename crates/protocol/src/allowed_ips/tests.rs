use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

fn table(entries: &[(&str, char)]) -> AllowedIps<char, char> {
    let mut table = AllowedIps::new();
    for (text, owner) in entries {
        table.insert(prefix(text), *owner, *owner);
    }
    table
}

fn owner(table: &AllowedIps<char, char>, address: &str) -> Option<char> {
    let (owner, value) = table.look_up(address.parse().unwrap())?;
    assert_eq!(owner, *value);
    Some(owner)
}

#[test]
fn the_longest_prefix_wins_in_any_order_of_insertion() {
    let entries = [
        ("0.0.0.0/0", 'z'),
        ("10.0.0.0/8", 'a'),
        ("10.20.0.0/16", 'b'),
        ("10.20.30.0/24", 'c'),
        ("10.20.30.40/32", 'd'),
        ("10.20.30.41/32", 'e'),
        ("10.128.0.0/9", 'f'),
        ("2001:db8::/32", 'g'),
        ("2001:db8:0:1::/64", 'h'),
        ("2001:db8:0:1::5/128", 'i'),
    ];
    let expected = [
        ("9.255.255.255", Some('z')),
        ("10.19.255.255", Some('a')),
        ("10.20.29.255", Some('b')),
        ("10.20.30.39", Some('c')),
        ("10.20.30.40", Some('d')),
        ("10.20.30.41", Some('e')),
        ("10.20.30.42", Some('c')),
        ("10.128.0.0", Some('f')),
        ("255.255.255.255", Some('z')),
        ("2001:db8::1", Some('g')),
        ("2001:db8:0:1::4", Some('h')),
        ("2001:db8:0:1::5", Some('i')),
        ("2001:db9::", None),
        ("::a14:1e28", None),
    ];
    for turn in 0..entries.len() {
        let mut turned = entries;
        turned.rotate_left(turn);
        for backwards in [false, true] {
            if backwards {
                turned.reverse();
            }
            let table = table(&turned);
            for (address, who) in expected {
                assert_eq!(owner(&table, address), who, "{address}, turned by {turn}");
            }
        }
    }
}

#[test]
fn everything_and_nothing() {
    let empty = table(&[]);
    assert_eq!(owner(&empty, "192.0.2.1"), None);
    let all = table(&[("0.0.0.0/0", 'a'), ("::/0", 'b')]);
    for (address, who) in [
        ("0.0.0.0", 'a'),
        ("255.255.255.255", 'a'),
        ("::", 'b'),
        ("ffff::ffff", 'b'),
    ] {
        assert_eq!(owner(&all, address), Some(who));
    }
}

#[test]
fn a_prefix_has_one_owner_the_last_to_ask() {
    let mut table = table(&[("10.0.0.0/24", 'a'), ("10.0.0.99/24", 'b')]);
    assert_eq!(owner(&table, "10.0.0.1"), Some('b'));
    assert_eq!(table.of('a').count(), 0);
    table.remove_all('a');
    assert_eq!(owner(&table, "10.0.0.1"), Some('b'), "it was no longer a's");
}

#[test]
fn only_the_exact_prefix_of_the_owner_is_removed() {
    let mut table = table(&[
        ("192.0.2.0/24", 'a'),
        ("192.0.2.7/32", 'a'),
        ("192.0.0.0/16", 'b'),
    ]);
    for (text, who) in [
        ("192.0.2.0/25", 'a'),
        ("192.0.2.0/24", 'b'),
        ("192.0.2.0/24", 'c'),
        ("::/24", 'a'),
    ] {
        assert!(!table.remove(prefix(text), who), "{text} of {who}");
        assert_eq!(owner(&table, "192.0.2.1"), Some('a'));
    }
    assert!(table.remove(prefix("192.0.2.0/24"), 'a'));
    assert_eq!(
        owner(&table, "192.0.2.1"),
        Some('b'),
        "falls back to the shorter"
    );
    assert_eq!(owner(&table, "192.0.2.7"), Some('a'));
    assert!(!table.remove(prefix("192.0.2.0/24"), 'a'), "gone already");
    assert_eq!(table.of('a').collect::<Vec<_>>(), [prefix("192.0.2.7/32")]);
}

#[test]
fn removing_everybody_leaves_no_node() {
    let mut table = table(&[
        ("10.0.0.0/8", 'a'),
        ("10.1.0.0/16", 'b'),
        ("10.2.0.0/16", 'a'),
        ("172.16.0.0/12", 'b'),
        ("fd00::/8", 'a'),
        ("fd00::1/128", 'b'),
    ]);
    table.remove_all('a');
    table.remove_all('b');
    assert_eq!((table.v4.nodes.len(), table.v6.nodes.len()), (0, 0));
    assert!(table.owned.is_empty());
}

#[test]
fn a_prefix_clears_what_is_behind_it_and_knows_its_limits() {
    assert_eq!(prefix("10.1.2.3/8").to_string(), "10.0.0.0/8");
    assert_eq!(
        prefix("2001:db8::ffff/120").to_string(),
        "2001:db8::ff00/120"
    );
    assert_eq!(Prefix::new("10.0.0.1".parse().unwrap(), 33), None);
    assert_eq!(Prefix::new("::1".parse().unwrap(), 129), None);
    assert!(prefix("10.0.0.0/8").contains("10.9.9.9".parse().unwrap()));
    assert!(!prefix("10.0.0.0/8").contains("a00::".parse().unwrap()));
}

/// Few distinct bits, so that prefixes nest and meet.
fn any_address() -> impl Strategy<Value = IpAddr> {
    let word = prop_oneof![
        Just(0u32),
        Just(u32::MAX),
        0u32..8,
        (0u32..8).prop_map(|n| n << 29)
    ];
    (any::<bool>(), word.clone(), word).prop_map(|(v4, high, low)| {
        if v4 {
            IpAddr::V4(Ipv4Addr::from_bits(high ^ low))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(
                u128::from(high) << 96 | u128::from(low),
            ))
        }
    })
}

fn any_prefix() -> impl Strategy<Value = Prefix> {
    (any_address(), any::<prop::sample::Index>()).prop_map(|(address, length)| {
        Prefix::new(
            address,
            length.index(usize::from(bits_of(address)) + 1) as u8,
        )
        .unwrap()
    })
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Prefix, u8),
    Remove(Prefix, u8),
    RemoveAll(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_prefix(), 0..4u8).prop_map(|(prefix, owner)| Step::Insert(prefix, owner)),
        3 => (any_prefix(), 0..4u8).prop_map(|(prefix, owner)| Step::Remove(prefix, owner)),
        1 => (0..4u8).prop_map(Step::RemoveAll),
    ]
}

proptest! {
    /// A list searched from end to end is the model.
    #[test]
    fn agrees_with_a_list(
        steps in prop::collection::vec(any_step(), 0..60),
        asked in prop::collection::vec(any_address(), 30),
    ) {
        let mut table = AllowedIps::new();
        let mut list: BTreeMap<Prefix, u8> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(prefix, owner) => {
                    table.insert(prefix, owner, ());
                    list.insert(prefix, owner);
                }
                Step::Remove(prefix, owner) => {
                    let had = list.get(&prefix) == Some(&owner);
                    prop_assert_eq!(table.remove(prefix, owner), had);
                    if had {
                        list.remove(&prefix);
                    }
                }
                Step::RemoveAll(owner) => {
                    table.remove_all(owner);
                    list.retain(|_, has| *has != owner);
                }
            }
        }
        let ends = list.keys().map(|prefix| prefix.address).collect::<Vec<_>>();
        for address in asked.into_iter().chain(ends) {
            let expected = list
                .iter()
                .filter(|(prefix, _)| prefix.contains(address))
                .max_by_key(|(prefix, _)| prefix.length)
                .map(|(_, owner)| *owner);
            prop_assert_eq!(table.look_up(address).map(|(owner, ())| owner), expected, "{}", address);
        }
        for owner in 0..4 {
            let expected: Vec<Prefix> = list.iter().filter(|(_, has)| **has == owner).map(|(prefix, _)| *prefix).collect();
            prop_assert_eq!(table.of(owner).collect::<Vec<_>>(), expected);
        }
        let used = table.v4.nodes.len() + table.v6.nodes.len() - table.v4.free.len() - table.v6.free.len();
        prop_assert!(used <= 2 * list.len(), "{} nodes for {} prefixes", used, list.len());
    }
}
