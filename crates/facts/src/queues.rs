//! Rings, hardware queues and the spreading of flows, by the kernel's ethtool family of generic netlink.

use std::collections::BTreeSet;

use netlink_packet_core::{NLA_HEADER_SIZE, NlasIterator, parse_u32, parse_u64};

use crate::generic_netlink::Undecoded;
use crate::netlink::NetlinkError;
use crate::offloads::Ethtool;
use crate::{Channels, Known, Rings, Spreading};

/// Kernel 5.7 and later.
const ETHTOOL_MSG_RINGS_GET: u8 = 15;
const ETHTOOL_A_RINGS_RX_MAX: u16 = 2;
const ETHTOOL_A_RINGS_TX_MAX: u16 = 5;
const ETHTOOL_A_RINGS_RX: u16 = 6;
const ETHTOOL_A_RINGS_TX: u16 = 9;
/// Kernel 5.7 and later.
const ETHTOOL_MSG_CHANNELS_GET: u8 = 17;
const ETHTOOL_A_CHANNELS_RX_MAX: u16 = 2;
const ETHTOOL_A_CHANNELS_TX_MAX: u16 = 3;
const ETHTOOL_A_CHANNELS_COMBINED_MAX: u16 = 5;
const ETHTOOL_A_CHANNELS_RX_COUNT: u16 = 6;
const ETHTOOL_A_CHANNELS_TX_COUNT: u16 = 7;
const ETHTOOL_A_CHANNELS_COMBINED_COUNT: u16 = 9;
/// Kernel 6.3 and later.
const ETHTOOL_MSG_RSS_GET: u8 = 38;
const ETHTOOL_A_RSS_INDIR: u16 = 4;
/// Kernel 6.17 and later; before that an ioctl alone tells it.
const ETHTOOL_A_RSS_FLOW_HASH: u16 = 8;
const ETHTOOL_A_FLOW_UDP4: u16 = 6;
const ETHTOOL_A_FLOW_UDP6: u16 = 7;

/// Bits of a flow hash (`RXH_…`) to the letters of `ethtool -N`.
const LETTERS: [(u32, char); 8] = [
    (1, 'm'),
    (2, 'v'),
    (3, 't'),
    (4, 's'),
    (5, 'd'),
    (6, 'f'),
    (7, 'n'),
    (31, 'r'),
];

impl Ethtool {
    /// Ring sizes of a link.
    pub(crate) fn rings(&mut self, index: u32) -> Result<Rings, NetlinkError> {
        self.ask("its ring sizes", ETHTOOL_MSG_RINGS_GET, index)
            .map(|answer| rings(&answer))
    }

    /// Hardware queues of a link.
    pub(crate) fn channels(&mut self, index: u32) -> Result<Channels, NetlinkError> {
        self.ask("its hardware queues", ETHTOOL_MSG_CHANNELS_GET, index)
            .map(|answer| channels(&answer))
    }

    /// How a link spreads flows; `name` is for the command that unknowns name.
    pub(crate) fn spreading(&mut self, index: u32, name: &str) -> Result<Spreading, NetlinkError> {
        self.ask("how it spreads flows", ETHTOOL_MSG_RSS_GET, index)
            .map(|answer| spreading(&answer, name))
    }
}

pub(crate) fn rings(answer: &Undecoded) -> Rings {
    let number = |kind| number(answer, kind);
    Rings {
        receive: number(ETHTOOL_A_RINGS_RX),
        receive_most: number(ETHTOOL_A_RINGS_RX_MAX),
        transmit: number(ETHTOOL_A_RINGS_TX),
        transmit_most: number(ETHTOOL_A_RINGS_TX_MAX),
    }
}

pub(crate) fn channels(answer: &Undecoded) -> Channels {
    let number = |kind| number(answer, kind);
    Channels {
        receive: number(ETHTOOL_A_CHANNELS_RX_COUNT),
        receive_most: number(ETHTOOL_A_CHANNELS_RX_MAX),
        transmit: number(ETHTOOL_A_CHANNELS_TX_COUNT),
        transmit_most: number(ETHTOOL_A_CHANNELS_TX_MAX),
        combined: number(ETHTOOL_A_CHANNELS_COMBINED_COUNT),
        combined_most: number(ETHTOOL_A_CHANNELS_COMBINED_MAX),
    }
}

pub(crate) fn spreading(answer: &Undecoded, link: &str) -> Spreading {
    let table = answer.value(ETHTOOL_A_RSS_INDIR).unwrap_or_default();
    let hashes = answer.value(ETHTOOL_A_RSS_FLOW_HASH);
    let hashed = |flow: u16, name: &str| {
        let Some(hashes) = &hashes else {
            return Known::because(format!(
                "kernels before 6.17 tell it only to programs that read no JSON: ethtool -n {link} rx-flow-hash {name}"
            ));
        };
        flow_hash(hashes, flow)
            .ok_or_else(|| format!("the driver does not tell what it hashes of {name}"))
            .into()
    };
    Spreading {
        queues: table.chunks_exact(4).collect::<BTreeSet<_>>().len(),
        udp4: hashed(ETHTOOL_A_FLOW_UDP4, "udp4"),
        udp6: hashed(ETHTOOL_A_FLOW_UDP6, "udp6"),
    }
}

/// The letters of one kind of flow in the nest of all: its number is 4 bytes, or 8 where it does not fit.
fn flow_hash(hashes: &[u8], flow: u16) -> Option<String> {
    let found = NlasIterator::new(hashes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == flow)?;
    let value = &found.into_inner()[NLA_HEADER_SIZE..usize::from(found.length())];
    let bits = parse_u32(value)
        .map(u64::from)
        .or_else(|_| parse_u64(value))
        .ok()?;
    Some(
        LETTERS
            .iter()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, letter)| letter)
            .collect(),
    )
}

fn number(answer: &Undecoded, kind: u16) -> Option<u32> {
    parse_u32(&answer.value(kind)?).ok()
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Emitable};
    use proptest::prelude::*;

    use super::*;

    fn answer(attributes: Vec<DefaultNla>) -> Undecoded {
        Undecoded::new(0, attributes)
    }

    fn nested(attributes: &[DefaultNla]) -> Vec<u8> {
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        bytes
    }

    #[test]
    fn hashes_are_in_the_letters_of_ethtool() {
        let addresses_and_ports: u32 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;
        let addresses: u32 = 1 << 4 | 1 << 5;
        let hashes = nested(&[
            DefaultNla::new(ETHTOOL_A_FLOW_UDP4, addresses.to_ne_bytes().to_vec()),
            DefaultNla::new(
                ETHTOOL_A_FLOW_UDP6,
                u64::from(addresses_and_ports).to_ne_bytes().to_vec(),
            ),
        ]);
        let table: Vec<u8> = [0_u32, 1, 2, 3, 0, 1, 2, 3]
            .iter()
            .flat_map(|queue| queue.to_ne_bytes())
            .collect();
        let told = spreading(
            &answer(vec![
                DefaultNla::new(ETHTOOL_A_RSS_INDIR, table.clone()),
                DefaultNla::new(ETHTOOL_A_RSS_FLOW_HASH, hashes),
            ]),
            "eth0",
        );
        assert_eq!(told.queues, 4);
        assert_eq!(told.udp4, Known::Value("sd".to_owned()));
        assert_eq!(told.udp6, Known::Value("sdfn".to_owned()));

        let before = spreading(
            &answer(vec![DefaultNla::new(ETHTOOL_A_RSS_INDIR, table)]),
            "eth0",
        );
        assert!(
            matches!(before.udp4, Known::Unknown(reason) if reason.contains("ethtool -n eth0 rx-flow-hash udp4"))
        );
    }

    #[test]
    fn a_card_of_this_machine_tells_its_rings() {
        let mut netlink = crate::links::open().unwrap();
        let links = crate::links::links(&mut netlink).unwrap();
        let mut ethtool = Ethtool::open().unwrap();
        let rings: Vec<Rings> = links
            .iter()
            .filter_map(|link| ethtool.rings(link.index).ok())
            .collect();
        if rings.is_empty() {
            crate::skipped::skipped("a_card_of_this_machine_tells_its_rings", "no link has any");
        }
        for rings in rings {
            assert!(rings.receive <= rings.receive_most, "{rings:?}");
        }
    }

    proptest! {
        #[test]
        fn any_attributes_are_read(
            rows in proptest::collection::vec((0..12_u16, proptest::collection::vec(any::<u8>(), 0..40)), 0..6)
        ) {
            let answer = answer(rows.into_iter().map(|(kind, value)| DefaultNla::new(kind, value)).collect());
            rings(&answer);
            channels(&answer);
            spreading(&answer, "eth0");
        }
    }
}
