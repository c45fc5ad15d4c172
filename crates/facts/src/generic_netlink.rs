//! Generic netlink: a family's number from its name, and requests to it.

use std::fmt::Debug;

use netlink_packet_core::{Emitable, ParseableParametrized};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::netlink::{Netlink, NetlinkError};

/// One family of generic netlink.
pub(crate) struct Family {
    netlink: Netlink,
    id: u16,
}

impl Family {
    /// Finds the family by its name (`wireguard`, `ethtool`); refused when the kernel does not have it. `what` names
    /// the subject in errors.
    pub(crate) fn open(name: &str, what: &'static str) -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open(NETLINK_GENERIC, what)?;
        let request = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(name.to_owned())],
        });
        let answer = netlink.get(request)?;
        answer
            .payload
            .nlas
            .iter()
            .find_map(|attribute| match attribute {
                GenlCtrlAttrs::FamilyId(id) => Some(*id),
                _ => None,
            })
            .map(|id| Self { netlink, id })
            .ok_or_else(|| NetlinkError::Decode {
                what,
                reason: "it has no family number".to_owned(),
            })
    }

    /// Asks the family for one thing.
    pub(crate) fn get<F>(&mut self, request: F) -> Result<F, NetlinkError>
    where
        F: GenlFamily + Emitable + Debug,
        F: ParseableParametrized<[u8], GenlHeader>,
    {
        let mut message = GenlMessage::from_payload(request);
        message.set_resolved_family_id(self.id);
        Ok(self.netlink.get(message)?.payload)
    }

    /// Asks the family for a list.
    pub(crate) fn dump<F>(&mut self, request: F) -> Result<Vec<F>, NetlinkError>
    where
        F: GenlFamily + Emitable + Debug,
        F: ParseableParametrized<[u8], GenlHeader>,
    {
        let mut message = GenlMessage::from_payload(request);
        message.set_resolved_family_id(self.id);
        Ok(self
            .netlink
            .dump(message)?
            .into_iter()
            .map(|answer| answer.payload)
            .collect())
    }
}
