//! Statistics of connection tracking over netlink, for kernels that show no `/proc/net/stat/nf_conntrack`.

use std::collections::BTreeMap;

use netlink_packet_core::{
    DecodeError, NetlinkDeserializable, NetlinkHeader, NetlinkPayload, NetlinkSerializable,
    NlasIterator, parse_u32_be,
};
use netlink_sys::protocols::NETLINK_NETFILTER;

use crate::netlink::{Netlink, NetlinkError};

/// `NFNL_SUBSYS_CTNETLINK` and `IPCTNL_MSG_CT_GET_STATS_CPU`.
const GET_STATS_CPU: u16 = 1 << 8 | 4;
/// `struct nfgenmsg`: any family, version 0, no resource.
const HEADER: [u8; 4] = [0; 4];
/// `CTA_STATS_…` from 1 on, by the names of the file.
const NAMES: [&str; 15] = [
    "searched",
    "found",
    "new",
    "invalid",
    "ignore",
    "delete",
    "delete_list",
    "insert",
    "insert_failed",
    "drop",
    "early_drop",
    "icmp_error",
    "search_restart",
    "clashres",
    "chainlength",
];

/// Adds `Conntrack.found` … summed over the cores. To be asked only where connection tracking is there: the question
/// would load its module. Needs `CAP_NET_ADMIN`.
pub(crate) fn add_statistics(counters: &mut BTreeMap<String, u64>) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open(NETLINK_NETFILTER, "statistics of connection tracking")?;
    for core in netlink.dump(Message(HEADER.to_vec()))? {
        add(&core.0, counters);
    }
    Ok(())
}

/// Adds what one core counted.
pub(crate) fn add(message: &[u8], counters: &mut BTreeMap<String, u64>) {
    let attributes = message.get(HEADER.len()..).unwrap_or_default();
    for attribute in NlasIterator::new(attributes).map_while(Result::ok) {
        let name = usize::from(attribute.kind())
            .checked_sub(1)
            .and_then(|index| NAMES.get(index));
        if let Some(name) = name
            && let Ok(count) = parse_u32_be(attribute.value())
        {
            let sum = counters.entry(format!("Conntrack.{name}")).or_default();
            *sum = sum.saturating_add(count.into());
        }
    }
}

/// A message of this subsystem, undecoded.
#[derive(Debug)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        GET_STATS_CPU
    }

    fn buffer_len(&self) -> usize {
        self.0.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..self.0.len()].copy_from_slice(&self.0);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(payload.to_vec()))
    }
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> Self {
        Self::InnerMessage(message)
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Emitable};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cores_are_summed_by_name() {
        let attributes = [
            DefaultNla::new(9, 3_u32.to_be_bytes().to_vec()),
            DefaultNla::new(4, 1_u32.to_be_bytes().to_vec()),
            DefaultNla::new(99, 7_u32.to_be_bytes().to_vec()),
        ];
        let mut message = HEADER.to_vec();
        message.resize(HEADER.len() + attributes.as_slice().buffer_len(), 0);
        attributes.as_slice().emit(&mut message[HEADER.len()..]);
        let mut counters = BTreeMap::new();
        add(&message, &mut counters);
        add(&message, &mut counters);
        let expected = [("Conntrack.insert_failed", 6), ("Conntrack.invalid", 2)];
        assert_eq!(
            counters,
            expected.map(|(name, sum)| (name.to_owned(), sum)).into()
        );
    }

    #[test]
    fn the_kernel_tells_the_same_both_ways() {
        let mut by_netlink = BTreeMap::new();
        let told = add_statistics(&mut by_netlink);
        let mut by_file = BTreeMap::new();
        let file = std::fs::read_to_string("/proc/thread-self/net/stat/nf_conntrack");
        if let (Ok(()), Ok(file)) = (&told, &file) {
            crate::proc_net::add_conntrack(file, &mut by_file);
            for name in ["insert_failed", "drop", "early_drop", "invalid", "found"] {
                let name = format!("Conntrack.{name}");
                assert!(by_netlink.contains_key(&name), "{by_netlink:?}");
                assert!(by_file.contains_key(&name), "{by_file:?}");
            }
        } else {
            crate::skipped::skipped(
                "the_kernel_tells_the_same_both_ways",
                &format!("{told:?} {:?}", file.err()),
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            add(&bytes, &mut BTreeMap::new());
        }
    }
}
