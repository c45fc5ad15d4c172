//! The four messages as they are on the wire (whitepaper, 5.4). Integers are little-endian.

use crate::aead::{EXTENDED_NONCE_BYTES, TAG_BYTES};
use crate::hash::MAC_BYTES;
use crate::keys::KEY_BYTES;
use crate::time::Tai64n;

/// Bytes before the ciphertext of a data message: type, receiver's index, counter.
pub const DATA_HEADER_BYTES: usize = 16;

/// What a data message adds to the (padded) inner packet: header and tag.
pub const DATA_OVERHEAD_BYTES: usize = DATA_HEADER_BYTES + TAG_BYTES;

/// Inner packets are padded to a multiple of this, but never beyond the MTU.
pub const PADDING_MULTIPLE: usize = 16;

/// The whole size of a handshake initiation.
pub const INITIATION_BYTES: usize = 148;

/// The whole size of a handshake response.
pub const RESPONSE_BYTES: usize = 92;

/// The whole size of a cookie reply.
pub const COOKIE_REPLY_BYTES: usize = 64;

pub(crate) const MACS_BYTES: usize = 2 * MAC_BYTES;

const TYPE_INITIATION: u32 = 1;
const TYPE_RESPONSE: u32 = 2;
const TYPE_COOKIE_REPLY: u32 = 3;
const TYPE_DATA: u32 = 4;

/// What a datagram claims to be, judged by its type, its three zero bytes and its length alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First message of a handshake.
    Initiation,
    /// Second message of a handshake.
    Response,
    /// "I'm busy: prove that you are at your address."
    CookieReply,
    /// An encrypted inner packet, or a keepalive.
    Data,
}

/// What this datagram claims to be; `None` when it is no message of the protocol.
pub fn kind(datagram: &[u8]) -> Option<Kind> {
    match (u32_at(datagram, 0)?, datagram.len()) {
        (TYPE_INITIATION, INITIATION_BYTES) => Some(Kind::Initiation),
        (TYPE_RESPONSE, RESPONSE_BYTES) => Some(Kind::Response),
        (TYPE_COOKIE_REPLY, COOKIE_REPLY_BYTES) => Some(Kind::CookieReply),
        (TYPE_DATA, DATA_OVERHEAD_BYTES..) => Some(Kind::Data),
        _ => None,
    }
}

/// The head of a data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The index the receiver chose for the session.
    pub receiver: u32,
    /// The packet's number in the session, its nonce.
    pub counter: u64,
}

impl DataHeader {
    /// The head of this datagram, if it claims to be data.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let head: &[u8; DATA_HEADER_BYTES] = datagram.first_chunk()?;
        let [t0, t1, t2, t3, r0, r1, r2, r3, counter @ ..] = *head;
        let is_data = u32::from_le_bytes([t0, t1, t2, t3]) == TYPE_DATA
            && datagram.len() >= DATA_OVERHEAD_BYTES;
        is_data.then_some(Self {
            receiver: u32::from_le_bytes([r0, r1, r2, r3]),
            counter: u64::from_le_bytes(counter),
        })
    }

    pub(crate) fn write(self, header: &mut [u8; DATA_HEADER_BYTES]) {
        header[..4].copy_from_slice(&TYPE_DATA.to_le_bytes());
        header[4..8].copy_from_slice(&self.receiver.to_le_bytes());
        header[8..].copy_from_slice(&self.counter.to_le_bytes());
    }
}

/// A handshake initiation without its MACs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initiation {
    /// The index the initiator chose.
    pub sender: u32,
    /// The initiator's ephemeral public key.
    pub ephemeral: [u8; KEY_BYTES],
    /// The initiator's static public key, sealed.
    pub static_sealed: [u8; KEY_BYTES + TAG_BYTES],
    /// The TAI64N timestamp, sealed.
    pub timestamp_sealed: [u8; Tai64n::BYTES + TAG_BYTES],
}

impl Initiation {
    /// The initiation in this datagram; `None` when it is something else.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        if kind(datagram)? != Kind::Initiation {
            return None;
        }
        Some(Self {
            sender: u32_at(datagram, 4)?,
            ephemeral: array_at(datagram, 8)?,
            static_sealed: array_at(datagram, 40)?,
            timestamp_sealed: array_at(datagram, 88)?,
        })
    }

    /// The message with room for the MACs, which are zero.
    pub fn to_bytes(&self) -> [u8; INITIATION_BYTES] {
        let mut bytes = [0; INITIATION_BYTES];
        bytes[..4].copy_from_slice(&TYPE_INITIATION.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sender.to_le_bytes());
        bytes[8..40].copy_from_slice(&self.ephemeral);
        bytes[40..88].copy_from_slice(&self.static_sealed);
        bytes[88..116].copy_from_slice(&self.timestamp_sealed);
        bytes
    }
}

/// A handshake response without its MACs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The index the responder chose.
    pub sender: u32,
    /// The index from the initiation.
    pub receiver: u32,
    /// The responder's ephemeral public key.
    pub ephemeral: [u8; KEY_BYTES],
    /// Nothing, sealed: the proof that the responder has all the keys.
    pub nothing_sealed: [u8; TAG_BYTES],
}

impl Response {
    /// The response in this datagram; `None` when it is something else.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        if kind(datagram)? != Kind::Response {
            return None;
        }
        Some(Self {
            sender: u32_at(datagram, 4)?,
            receiver: u32_at(datagram, 8)?,
            ephemeral: array_at(datagram, 12)?,
            nothing_sealed: array_at(datagram, 44)?,
        })
    }

    /// The message with room for the MACs, which are zero.
    pub fn to_bytes(&self) -> [u8; RESPONSE_BYTES] {
        let mut bytes = [0; RESPONSE_BYTES];
        bytes[..4].copy_from_slice(&TYPE_RESPONSE.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sender.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[12..44].copy_from_slice(&self.ephemeral);
        bytes[44..60].copy_from_slice(&self.nothing_sealed);
        bytes
    }
}

/// A cookie reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieReply {
    /// The sender's index of the message that is answered.
    pub receiver: u32,
    /// The nonce of the sealing.
    pub nonce: [u8; EXTENDED_NONCE_BYTES],
    /// The cookie, sealed.
    pub cookie_sealed: [u8; MAC_BYTES + TAG_BYTES],
}

impl CookieReply {
    /// The cookie reply in this datagram; `None` when it is something else.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        if kind(datagram)? != Kind::CookieReply {
            return None;
        }
        Some(Self {
            receiver: u32_at(datagram, 4)?,
            nonce: array_at(datagram, 8)?,
            cookie_sealed: array_at(datagram, 32)?,
        })
    }

    /// The message.
    pub fn to_bytes(&self) -> [u8; COOKIE_REPLY_BYTES] {
        let mut bytes = [0; COOKIE_REPLY_BYTES];
        bytes[..4].copy_from_slice(&TYPE_COOKIE_REPLY.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[8..32].copy_from_slice(&self.nonce);
        bytes[32..].copy_from_slice(&self.cookie_sealed);
        bytes
    }
}

/// The two MACs that end an initiation or a response, and what each of them covers.
pub(crate) struct Macs<'a> {
    pub(crate) covered_by_mac1: &'a [u8],
    pub(crate) mac1: [u8; MAC_BYTES],
    pub(crate) covered_by_mac2: &'a [u8],
    pub(crate) mac2: [u8; MAC_BYTES],
}

impl<'a> Macs<'a> {
    /// The MACs at the end of this message; `None` when it is too short to have any.
    pub(crate) fn of(message: &'a [u8]) -> Option<Self> {
        let at = message.len().checked_sub(MACS_BYTES)?;
        Some(Self {
            covered_by_mac1: &message[..at],
            mac1: array_at(message, at)?,
            covered_by_mac2: &message[..at + MAC_BYTES],
            mac2: array_at(message, at + MAC_BYTES)?,
        })
    }

    /// Whether there is a second one: zeros say that the sender has no cookie to make it with.
    pub(crate) fn has_mac2(&self) -> bool {
        self.mac2 != [0; MAC_BYTES]
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (kind(&bytes), DataHeader::parse(&bytes), Initiation::parse(&bytes));
            let _ = (Response::parse(&bytes), CookieReply::parse(&bytes), Macs::of(&bytes).is_some());
        }

        #[test]
        fn what_parses_is_written_back_the_same(
            kind in 1u8..=3, body in prop::collection::vec(any::<u8>(), INITIATION_BYTES),
        ) {
            let length = [INITIATION_BYTES, RESPONSE_BYTES, COOKIE_REPLY_BYTES][usize::from(kind) - 1];
            let mut bytes = body[..length].to_vec();
            bytes[..4].copy_from_slice(&[kind, 0, 0, 0]);
            let (written, compared) = match kind {
                1 => (Initiation::parse(&bytes).unwrap().to_bytes().to_vec(), length - MACS_BYTES),
                2 => (Response::parse(&bytes).unwrap().to_bytes().to_vec(), length - MACS_BYTES),
                _ => (CookieReply::parse(&bytes).unwrap().to_bytes().to_vec(), length),
            };
            prop_assert_eq!(&written[..compared], &bytes[..compared]);
        }

        #[test]
        fn a_data_header_is_read_as_written(receiver: u32, counter: u64) {
            let mut bytes = [0; DATA_OVERHEAD_BYTES];
            let header = DataHeader { receiver, counter };
            header.write((&mut bytes[..DATA_HEADER_BYTES]).try_into().unwrap());
            prop_assert_eq!(DataHeader::parse(&bytes), Some(header));
        }
    }

    #[test]
    fn only_the_right_length_and_zero_reserved_bytes_make_a_message() {
        for (kind_byte, length) in [
            (1, INITIATION_BYTES),
            (2, RESPONSE_BYTES),
            (3, COOKIE_REPLY_BYTES),
            (4, 32),
        ] {
            let mut bytes = vec![0; length];
            bytes[0] = kind_byte;
            assert!(kind(&bytes).is_some());
            assert!(kind(&bytes[..length - 1]).is_none());
            bytes[3] = 1;
            assert!(kind(&bytes).is_none());
            bytes[3] = 0;
            bytes.push(0);
            assert_eq!(
                kind(&bytes).is_some(),
                kind_byte == 4,
                "only data has no fixed length"
            );
        }
        assert!(kind(&[]).is_none());
        assert!(kind(&[0; 148]).is_none());
        assert!(kind(&[5, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }
}
