//! Generic netlink: a family's number from its name, and requests to it.

use std::fmt::Debug;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, Nla, NlasIterator, Parseable,
    ParseableParametrized, parse_u16,
};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::netlink::{Netlink, NetlinkError};

/// The family that knows the numbers of the others.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

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
        let mut wanted = name.as_bytes().to_vec();
        wanted.push(0);
        let attributes = vec![DefaultNla::new(CTRL_ATTR_FAMILY_NAME, wanted)];
        let request = Undecoded::new(CTRL_CMD_GETFAMILY, attributes);
        let mut request = GenlMessage::from_payload(request);
        request.set_resolved_family_id(GENL_ID_CTRL);
        let answer = netlink.get(request)?;
        family_id(&answer.payload)
            .map(|id| Self { netlink, id })
            .ok_or_else(|| NetlinkError::Decode {
                what,
                reason: "it has no family number".to_owned(),
            })
    }

    /// Names the subject of the next requests.
    pub(crate) fn about(&mut self, what: &'static str) -> &mut Self {
        self.netlink.about(what);
        self
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

/// The number of a family in the answer about it.
pub(crate) fn family_id(answer: &Undecoded) -> Option<u16> {
    parse_u16(&answer.value(CTRL_ATTR_FAMILY_ID)?).ok()
}

/// A message of some family: the command and its attributes, none of them decoded further.
#[derive(Debug)]
pub(crate) struct Undecoded {
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl Undecoded {
    pub(crate) fn new(command: u8, attributes: Vec<DefaultNla>) -> Self {
        Self {
            command,
            attributes,
        }
    }

    /// The value of the first attribute of this kind.
    pub(crate) fn value(&self, kind: u16) -> Option<Vec<u8>> {
        let found = self
            .attributes
            .iter()
            .find(|attribute| attribute.kind() & !NLA_F_NESTED == kind)?;
        let mut value = vec![0; found.value_len()];
        found.emit_value(&mut value);
        Some(value)
    }
}

impl GenlFamily for Undecoded {
    fn family_name() -> &'static str {
        "any"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Undecoded {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Undecoded {
    fn parse_with_param(buffer: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        let attributes = NlasIterator::new(buffer)
            .map(|attribute| DefaultNla::parse(&attribute?))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            command: header.cmd,
            attributes,
        })
    }
}
