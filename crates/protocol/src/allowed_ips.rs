//! Which peer an inner address belongs to: longest prefix match, one owner for each prefix.
//!
//! A binary trie in which only nodes that hold a prefix or part two branches exist, so a look-up visits at most
//! as many nodes as prefixes nest, plus branches. IPv4 and IPv6 have a trie each; an address is left-aligned
//! in 128 bits.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

/// A range of addresses: those whose first `length` bits are the address's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// None comes before it.
    const FIRST: Self = Self {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        length: 0,
    };

    /// The range around `address`; bits behind `length` are cleared. `None` when `length` is more than the address has.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= bits_of(address)).then(|| Self {
            address: address_of(address.is_ipv4(), masked(aligned(address), length)),
            length,
        })
    }

    /// The first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits matter.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether the address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(aligned(address), self.length) == aligned(self.address)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The table, from prefix to owner. `O` identifies an owner, `T` is what a look-up gives.
pub(crate) struct AllowedIps<O, T> {
    v4: Trie<(O, T)>,
    v6: Trie<(O, T)>,
    /// One set for all, because most owners have one or two.
    owned: BTreeSet<(O, Prefix)>,
}

impl<O: Copy + Ord, T> AllowedIps<O, T> {
    pub(crate) const fn new() -> Self {
        Self {
            v4: Trie::new(),
            v6: Trie::new(),
            owned: BTreeSet::new(),
        }
    }

    /// Gives the prefix to this owner; who had it before loses it.
    pub(crate) fn insert(&mut self, prefix: Prefix, owner: O, value: T) {
        let trie = self.trie_mut(prefix.address);
        let before = trie.insert(aligned(prefix.address), prefix.length, (owner, value));
        if let Some((before, _)) = before {
            self.owned.remove(&(before, prefix));
        }
        self.owned.insert((owner, prefix));
    }

    /// Takes the prefix from this owner; false, and nothing changes, when it isn't exactly its.
    pub(crate) fn remove(&mut self, prefix: Prefix, owner: O) -> bool {
        if !self.owned.remove(&(owner, prefix)) {
            return false;
        }
        self.trie_mut(prefix.address)
            .remove(aligned(prefix.address), prefix.length);
        true
    }

    /// Takes all its prefixes from this owner.
    pub(crate) fn remove_all(&mut self, owner: O) {
        let all: Vec<Prefix> = self.of(owner).collect();
        for prefix in all {
            self.owned.remove(&(owner, prefix));
            self.trie_mut(prefix.address)
                .remove(aligned(prefix.address), prefix.length);
        }
    }

    /// The owner of the longest prefix that contains the address.
    pub(crate) fn look_up(&self, address: IpAddr) -> Option<(O, &T)> {
        let trie = if address.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        };
        let (owner, value) = trie.look_up(aligned(address))?;
        Some((*owner, value))
    }

    /// What this owner has, in order.
    pub(crate) fn of(&self, owner: O) -> impl Iterator<Item = Prefix> {
        self.owned
            .range((owner, Prefix::FIRST)..)
            .take_while(move |(other, _)| *other == owner)
            .map(|(_, prefix)| *prefix)
    }

    fn trie_mut(&mut self, address: IpAddr) -> &mut Trie<(O, T)> {
        if address.is_ipv4() {
            &mut self.v4
        } else {
            &mut self.v6
        }
    }
}

/// Nodes refer to each other by their place in `nodes`; places that became free are used again.
struct Trie<V> {
    nodes: Vec<Node<V>>,
    free: Vec<Place>,
    root: Option<Place>,
}

/// Where a node is, plus one, so that none at all takes no room of its own.
#[derive(Clone, Copy)]
struct Place(NonZeroU32);

impl Place {
    fn at(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("four thousand million prefixes don't fit in memory"))
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

struct Node<V> {
    bits: u128,
    length: u8,
    value: Option<V>,
    /// By the first bit behind the node's own.
    children: [Option<Place>; 2],
}

/// Where a node hangs: from nothing, or from the branch of another.
#[derive(Clone, Copy)]
enum Link {
    Root,
    Child(Place, usize),
}

impl<V> Trie<V> {
    const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            root: None,
        }
    }

    fn look_up(&self, address: u128) -> Option<&V> {
        let mut found = None;
        let mut next = self.root;
        while let Some(at) = next {
            let node = &self.nodes[at.index()];
            if !covers(node.bits, node.length, address) {
                break;
            }
            found = node.value.as_ref().or(found);
            if node.length == 128 {
                break;
            }
            next = node.children[bit(address, node.length)];
        }
        found
    }

    /// Returns the value that was there before.
    fn insert(&mut self, bits: u128, length: u8, value: V) -> Option<V> {
        let mut link = Link::Root;
        while let Some(at) = self.target(link) {
            let node = &mut self.nodes[at.index()];
            if (node.bits, node.length) == (bits, length) {
                return node.value.replace(value);
            }
            if node.length >= length || !covers(node.bits, node.length, bits) {
                self.insert_above(link, at, bits, length, value);
                return None;
            }
            link = Link::Child(at, bit(bits, node.length));
        }
        let new = self.add(bits, length, Some(value));
        self.set(link, Some(new));
        None
    }

    /// Puts a new node where `at` hangs, and `at` below it or beside it.
    fn insert_above(&mut self, link: Link, at: Place, bits: u128, length: u8, value: V) {
        let below = self.nodes[at.index()].bits;
        let new = self.add(bits, length, Some(value));
        let common = (bits ^ below).leading_zeros() as u8;
        let upper = if common >= length {
            new
        } else {
            let branch = self.add(masked(bits, common), common, None);
            self.nodes[branch.index()].children[bit(bits, common)] = Some(new);
            branch
        };
        let side = bit(below, self.nodes[upper.index()].length);
        self.nodes[upper.index()].children[side] = Some(at);
        self.set(link, Some(upper));
    }

    fn remove(&mut self, bits: u128, length: u8) {
        let mut above = None;
        let mut link = Link::Root;
        while let Some(at) = self.target(link) {
            let node = &mut self.nodes[at.index()];
            if (node.bits, node.length) == (bits, length) {
                node.value = None;
                self.tidy(link, at);
                if let Some((link, at)) = above {
                    self.tidy(link, at);
                }
                return;
            }
            if node.length >= length || !covers(node.bits, node.length, bits) {
                return;
            }
            above = Some((link, at));
            link = Link::Child(at, bit(bits, node.length));
        }
    }

    /// Takes a node out that neither holds a value nor parts two branches.
    fn tidy(&mut self, link: Link, at: Place) {
        let node = &self.nodes[at.index()];
        let (None, [only, None] | [None, only]) = (&node.value, node.children) else {
            return;
        };
        self.set(link, only);
        self.free.push(at);
        if self.root.is_none() {
            self.nodes = Vec::new();
            self.free = Vec::new();
        }
    }

    fn add(&mut self, bits: u128, length: u8, value: Option<V>) -> Place {
        let node = Node {
            bits,
            length,
            value,
            children: [None; 2],
        };
        if let Some(at) = self.free.pop() {
            self.nodes[at.index()] = node;
            return at;
        }
        self.nodes.push(node);
        Place::at(self.nodes.len() - 1)
    }

    fn target(&self, link: Link) -> Option<Place> {
        match link {
            Link::Root => self.root,
            Link::Child(parent, side) => self.nodes[parent.index()].children[side],
        }
    }

    fn set(&mut self, link: Link, to: Option<Place>) {
        match link {
            Link::Root => self.root = to,
            Link::Child(parent, side) => self.nodes[parent.index()].children[side] = to,
        }
    }
}

fn covers(bits: u128, length: u8, address: u128) -> bool {
    masked(address, length) == bits
}

/// The bit behind the first `at`, counted from the left.
fn bit(bits: u128, at: u8) -> usize {
    usize::from(bits << at >> 127 == 1)
}

fn masked(bits: u128, length: u8) -> u128 {
    match length {
        0 => 0,
        _ => bits & (u128::MAX << (128 - u32::from(length))),
    }
}

fn aligned(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn address_of(v4: bool, bits: u128) -> IpAddr {
    if v4 {
        IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    }
}

const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests;
