//! The few netlink requests the knobs need.
//!
//! Changes are made by this process itself, not by a program it starts: when it is killed, no child is
//! left that changes the machine a moment later, after everything was put back.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

use crate::SettingError;

pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_GETLINK: u16 = 18;
pub(crate) const RTM_NEWROUTE: u16 = 24;
pub(crate) const RTM_GETROUTE: u16 = 26;
pub(crate) const RTM_NEWQDISC: u16 = 36;
pub(crate) const RTM_DELQDISC: u16 = 37;
pub(crate) const RTM_GETQDISC: u16 = 38;

pub(crate) const NLM_F_REPLACE: u16 = 0x100;
pub(crate) const NLM_F_CREATE: u16 = 0x400;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Upper bound of one dump in bytes; a full routing table of the Internet is about 150 MB.
const DUMP_LIMIT: usize = 512 << 20;

/// A connection to the kernel's rtnetlink or generic netlink, in the caller's network namespace.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> Result<Self, SettingError> {
        // Protocol `None` is NETLINK_ROUTE.
        Self::open_protocol(None)
    }

    /// A connection to generic netlink.
    pub(crate) fn open_generic() -> Result<Self, SettingError> {
        Self::open_protocol(Some(netlink::GENERIC))
    }

    fn open_protocol(protocol: Option<Protocol>) -> Result<Self, SettingError> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )
        .map_err(|source| SettingError::system("opening a netlink socket", source))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_WITHIN))
            .map_err(|source| SettingError::system("opening a netlink socket", source))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request that changes something and waits for the kernel's acknowledgement.
    pub(crate) fn change(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.exchange(kind, flags | NLM_F_ACK, body, |_, _| {})
    }

    /// Asks for one object; gives the body of the answer.
    pub(crate) fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut answer = None;
        self.exchange(kind, NLM_F_ACK, body, |_, body| {
            answer = Some(body.to_vec());
        })?;
        answer
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the kernel gave no answer"))
    }

    /// Asks for every object of a kind; `each` sees the body of each.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.exchange(kind, NLM_F_DUMP, body, |_, body| each(body))
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence += 1;
        let request = message(kind, flags | NLM_F_REQUEST, self.sequence, body);
        send(&self.socket, &request, SendFlags::empty())?;
        let mut buffer = vec![0_u8; 64 * 1024];
        let mut total = 0;
        loop {
            let (_, length) = match recv(&self.socket, buffer.as_mut_slice(), RecvFlags::TRUNC) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            if length > buffer.len() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "netlink answer longer than 64 KiB",
                ));
            }
            total += length;
            if length == 0 || total > DUMP_LIMIT {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "netlink answer too long or empty",
                ));
            }
            for (kind, sequence, body) in Messages(&buffer[..length]) {
                if sequence != self.sequence {
                    continue;
                }
                if let Some(end) = end_of_answer(kind, body) {
                    return end;
                }
                each(kind, body);
            }
        }
    }
}

/// How the answer ended, if this message ends it.
pub(crate) fn end_of_answer(kind: u16, body: &[u8]) -> Option<io::Result<()>> {
    match (kind, read_i32(body, 0)) {
        (NLMSG_ERROR, Some(0)) => Some(Ok(())),
        (NLMSG_DONE, error) if error.is_none_or(|error| error >= 0) => Some(Ok(())),
        (NLMSG_ERROR | NLMSG_DONE, Some(error)) => {
            Some(Err(io::Error::from_raw_os_error(error.wrapping_neg())))
        }
        (NLMSG_ERROR, None) => Some(Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "short netlink error",
        ))),
        _ => None,
    }
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    message.extend_from_slice(&sequence.to_ne_bytes());
    message.extend_from_slice(&0_u32.to_ne_bytes());
    message.extend_from_slice(body);
    message
}

/// The messages of one datagram: (type, sequence, body). Ends at the first malformed one.
pub(crate) struct Messages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = (u16, u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = read_u32(self.0, 0)? as usize;
        if length < HEADER || length > self.0.len() {
            return None;
        }
        let (kind, sequence) = (read_u16(self.0, 4)?, read_u32(self.0, 8)?);
        let body = &self.0[HEADER..length];
        self.0 = self.0.get(align(length)..).unwrap_or_default();
        Some((kind, sequence, body))
    }
}

/// The attributes of a message or of a nested attribute: (type without flags, payload).
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(read_u16(self.0, 0)?);
        if length < 4 || length > self.0.len() {
            return None;
        }
        let kind = read_u16(self.0, 2)? & 0x3fff;
        let payload = &self.0[4..length];
        self.0 = self.0.get(align(length)..).unwrap_or_default();
        Some((kind, payload))
    }
}

impl<'a> Attributes<'a> {
    pub(crate) fn find(self, kind: u16) -> Option<&'a [u8]> {
        for (found, payload) in self {
            if found == kind {
                return Some(payload);
            }
        }
        None
    }
}

/// Appends one attribute, padded.
pub(crate) fn push_attribute(body: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    body.extend_from_slice(&((4 + payload.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(payload);
    body.resize(align(body.len()), 0);
}

/// A string attribute's text, without the closing NUL.
pub(crate) fn text(payload: &[u8]) -> String {
    let end = payload
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(payload.len());
    String::from_utf8_lossy(&payload[..end]).into_owned()
}

/// A string as an attribute's payload, with the closing NUL.
pub(crate) fn c_text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_the_round_trip_and_garbage_ends_them() {
        let mut body = Vec::new();
        push_attribute(&mut body, 3, &c_text("wg0"));
        push_attribute(&mut body, 4, &1420_u32.to_ne_bytes());
        let found: Vec<_> = Attributes(&body).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(text(found[0].1), "wg0");
        assert_eq!(read_u32(Attributes(&body).find(4).unwrap(), 0), Some(1420));
        assert_eq!(Attributes(&body[..body.len() - 1]).count(), 1);
        assert_eq!(Attributes(&[0, 0, 0, 0]).count(), 0);
        assert_eq!(Attributes(&[255, 255, 0, 0]).count(), 0);
    }

    #[test]
    fn messages_of_a_datagram_are_split() {
        let mut datagram = message(7, 0, 1, &[1, 2, 3]);
        datagram.push(0);
        datagram.extend(message(8, 0, 1, &[]));
        let kinds: Vec<_> = Messages(&datagram)
            .map(|(kind, _, body)| (kind, body.len()))
            .collect();
        assert_eq!(kinds, [(7, 3), (8, 0)]);
        assert_eq!(Messages(&datagram[..10]).count(), 0);
    }
}
