//! Offload features and speeds, by the kernel's ethtool family of generic netlink (kernel 5.6 and later).

use std::collections::BTreeMap;

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NlasIterator, parse_string, parse_u32,
};

use crate::generic_netlink::{Family, Undecoded};
use crate::netlink::NetlinkError;

const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_FEATURES_HW: u16 = 2;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_BITSET_NOMASK: u16 = 1;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
const ETHTOOL_A_BITSET_BIT_VALUE: u16 = 3;
/// The driver does not know its speed.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// What the ethtool family tells of links.
pub(crate) struct Ethtool {
    family: Family,
    /// Speed in bit/s of those links whose driver has one, by interface index.
    speeds: BTreeMap<u32, u64>,
}

impl Ethtool {
    /// Opens the family and asks for all speeds at once.
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let mut family = Family::open("ethtool", "speeds and features of links")?;
        let answers = family.dump(request(ETHTOOL_MSG_LINKMODES_GET, None))?;
        let speeds = answers
            .iter()
            .filter_map(|answer| Some((index(answer)?, speed(answer)?)))
            .collect();
        Ok(Self { family, speeds })
    }

    /// Speed of a link in bit/s.
    pub(crate) fn speed(&self, index: u32) -> Option<u64> {
        self.speeds.get(&index).copied()
    }

    /// Features of a link to on/off. Asked link by link: with their names they are too long for the kernel's
    /// listing of all links.
    pub(crate) fn features(&mut self, index: u32) -> Result<BTreeMap<String, bool>, NetlinkError> {
        self.ask("its features", ETHTOOL_MSG_FEATURES_GET, index)
            .map(|answer| features(&answer))
    }

    /// One question about one link; `what` names it in errors.
    pub(crate) fn ask(
        &mut self,
        what: &'static str,
        command: u8,
        index: u32,
    ) -> Result<Undecoded, NetlinkError> {
        self.family.about(what).get(request(command, Some(index)))
    }
}

/// A request for one link, or for every one. Without the compact flag features come by name.
fn request(command: u8, index: Option<u32>) -> Undecoded {
    let link = index
        .map(|index| DefaultNla::new(ETHTOOL_A_HEADER_DEV_INDEX, index.to_ne_bytes().to_vec()));
    let mut header = vec![0; link.as_ref().map_or(0, Emitable::buffer_len)];
    if let Some(link) = link {
        link.emit(&mut header);
    }
    Undecoded::new(
        command,
        vec![DefaultNla::new(ETHTOOL_A_HEADER | NLA_F_NESTED, header)],
    )
}

/// Which link an answer is about.
pub(crate) fn index(answer: &Undecoded) -> Option<u32> {
    let header = answer.value(ETHTOOL_A_HEADER)?;
    let index = attribute(&header, ETHTOOL_A_HEADER_DEV_INDEX)?;
    parse_u32(index).ok()
}

/// Speed in bit/s.
pub(crate) fn speed(answer: &Undecoded) -> Option<u64> {
    let megabits = parse_u32(&answer.value(ETHTOOL_A_LINKMODES_SPEED)?).ok()?;
    (megabits != SPEED_UNKNOWN && megabits != 0).then(|| u64::from(megabits) * 1_000_000)
}

/// "Active" lists only what is on; the set of changeable ones has every feature in its mask, so all names.
pub(crate) fn features(answer: &Undecoded) -> BTreeMap<String, bool> {
    let mut features: BTreeMap<String, bool> = answer
        .value(ETHTOOL_A_FEATURES_HW)
        .map(|set| bits(&set))
        .unwrap_or_default()
        .into_keys()
        .map(|name| (name, false))
        .collect();
    if let Some(active) = answer.value(ETHTOOL_A_FEATURES_ACTIVE) {
        features.extend(bits(&active));
    }
    features
}

/// Value of the first attribute of this kind.
fn attribute(buffer: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(buffer)
        .find(|(found, _)| *found == kind)
        .map(|(_, value)| value)
}

/// Kinds and values.
fn attributes(buffer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(buffer)
        .map_while(Result::ok)
        .map(|attribute| {
            let whole = attribute.into_inner();
            let length = usize::from(attribute.length());
            (attribute.kind(), &whole[NLA_HEADER_SIZE..length])
        })
}

/// Names and values of a bit set: with a mask it says on or off for each bit, without one it lists those that are on.
fn bits(set: &[u8]) -> BTreeMap<String, bool> {
    let only_set = attribute(set, ETHTOOL_A_BITSET_NOMASK).is_some();
    let Some(list) = attribute(set, ETHTOOL_A_BITSET_BITS) else {
        return BTreeMap::new();
    };
    attributes(list)
        .filter_map(|(_, bit)| {
            let name = parse_string(attribute(bit, ETHTOOL_A_BITSET_BIT_NAME)?).ok()?;
            let on = only_set || attribute(bit, ETHTOOL_A_BITSET_BIT_VALUE).is_some();
            Some((name, on)).filter(|(name, _)| !name.is_empty())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::ParseableParametrized;
    use netlink_packet_generic::GenlHeader;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_loopback_has_features_that_are_on_and_off() {
        let mut netlink = crate::links::open().unwrap();
        let links = crate::links::links(&mut netlink).unwrap();
        let loopback = links.iter().find(|link| link.name == "lo").unwrap();
        let features = Ethtool::open().unwrap().features(loopback.index).unwrap();
        assert!(features.values().any(|on| *on) && features.values().any(|on| !on));
        assert!(features.contains_key("rx-gro"), "{features:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let header = GenlHeader { cmd: ETHTOOL_MSG_FEATURES_GET, version: 1 };
            if let Ok(message) = Undecoded::parse_with_param(&bytes, header) {
                super::features(&message);
                speed(&message);
                index(&message);
            }
        }
    }
}
