//! Asking the kernel over netlink, blocking and bounded.
//!
//! One [`Netlink`] is one socket of one protocol. Every answer is read within [`TIME_LIMIT`] and
//! [`SIZE_LIMIT`]; received bytes are wiped after use, because WireGuard's answers carry keys.

use std::io;
use std::time::{Duration, Instant};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use zeroize::Zeroizing;

/// Longest wait for one whole answer.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Most bytes of one whole answer (a WireGuard device of 100,000 peers takes about 30 MB).
const SIZE_LIMIT: usize = 64 << 20;

/// Why the kernel's answer is missing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetlinkError {
    /// No socket of this protocol.
    #[error("could not open a netlink socket for {what}: {source}")]
    Open {
        what: &'static str,
        source: io::Error,
    },
    /// Sending or receiving failed.
    #[error("could not ask the kernel for {what} over netlink: {source}")]
    Exchange {
        what: &'static str,
        source: io::Error,
    },
    /// The kernel answered with an error.
    #[error("the kernel refused to tell {what}: {source}")]
    Refused {
        what: &'static str,
        source: io::Error,
    },
    /// Too slow or too long an answer.
    #[error("the kernel's answer about {what} went over its limit of {limit}")]
    Limit {
        what: &'static str,
        limit: &'static str,
    },
    /// An answer that could not be read.
    #[error("could not read the kernel's answer about {what}: {reason}")]
    Decode { what: &'static str, reason: String },
}

/// One netlink socket; `what` names the subject in errors.
pub(crate) struct Netlink {
    socket: Socket,
    what: &'static str,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket of `protocol` (`netlink_sys::protocols`) in the calling thread's network namespace.
    pub(crate) fn open(protocol: isize, what: &'static str) -> Result<Self, NetlinkError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            set_socket_timeout(&socket, Timeout::Recv, Some(TIME_LIMIT))?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => Ok(Self {
                socket,
                what,
                sequence: 0,
            }),
            Err(source) => Err(NetlinkError::Open { what, source }),
        }
    }

    /// Names the subject of the next requests.
    pub(crate) fn about(&mut self, what: &'static str) -> &mut Self {
        self.what = what;
        self
    }

    /// Asks for a list. Messages of a list that could not be decoded are left out, as long as some could.
    pub(crate) fn dump<M>(&mut self, request: M) -> Result<Vec<M>, NetlinkError>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
    {
        self.send(request, NLM_F_REQUEST | NLM_F_DUMP)?;
        self.receive(true)
    }

    /// Asks for one thing.
    pub(crate) fn get<M>(&mut self, request: M) -> Result<M, NetlinkError>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
    {
        self.send(request, NLM_F_REQUEST)?;
        self.receive(false)?
            .pop()
            .ok_or_else(|| NetlinkError::Decode {
                what: self.what,
                reason: "it was empty".to_owned(),
            })
    }

    fn send<M>(&mut self, request: M, flags: u16) -> Result<(), NetlinkError>
    where
        M: NetlinkSerializable + Into<NetlinkPayload<M>>,
    {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, request.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        match self.socket.send(&bytes, 0) {
            Ok(_) => Ok(()),
            Err(source) => Err(NetlinkError::Exchange {
                what: self.what,
                source,
            }),
        }
    }

    fn receive<M>(&mut self, list: bool) -> Result<Vec<M>, NetlinkError>
    where
        M: NetlinkDeserializable,
    {
        let what = self.what;
        let deadline = Instant::now() + TIME_LIMIT;
        let mut received = 0;
        let mut messages = Vec::new();
        let mut undecodable = None;
        loop {
            let (bytes, _) = self
                .socket
                .recv_from_full()
                .map_err(|source| NetlinkError::Exchange { what, source })?;
            let bytes = Zeroizing::new(bytes);
            received += bytes.len();
            let mut rest = &bytes[..];
            while let Some((message, after)) = split_message(rest) {
                rest = after;
                let Some(message) = self.belongs(message) else {
                    continue;
                };
                match NetlinkMessage::<M>::deserialize(message) {
                    Ok(message) => match message.payload {
                        NetlinkPayload::InnerMessage(inner) => {
                            messages.push(inner);
                            if !list {
                                return Ok(messages);
                            }
                        }
                        NetlinkPayload::Error(error) if error.code.is_some() => {
                            return Err(NetlinkError::Refused {
                                what,
                                source: error.to_io(),
                            });
                        }
                        NetlinkPayload::Done(done) if done.code < 0 => {
                            return Err(NetlinkError::Refused {
                                what,
                                source: io::Error::from_raw_os_error(done.code.saturating_neg()),
                            });
                        }
                        NetlinkPayload::Done(_) => {
                            return match undecodable {
                                Some(reason) if messages.is_empty() => {
                                    Err(NetlinkError::Decode { what, reason })
                                }
                                _ => Ok(messages),
                            };
                        }
                        _ => {}
                    },
                    Err(error) if list => undecodable = Some(error.to_string()),
                    Err(error) => {
                        return Err(NetlinkError::Decode {
                            what,
                            reason: error.to_string(),
                        });
                    }
                }
            }
            if received > SIZE_LIMIT {
                return Err(NetlinkError::Limit {
                    what,
                    limit: "64 MiB",
                });
            }
            if Instant::now() > deadline {
                return Err(NetlinkError::Limit { what, limit: "1 s" });
            }
        }
    }

    /// The message if it answers the latest request, not one that was given up.
    fn belongs<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        let sequence = message.get(8..12)?.try_into().ok()?;
        (u32::from_ne_bytes(sequence) == self.sequence).then_some(message)
    }
}

/// The first message of a received buffer and what follows it (messages start at multiples of 4).
pub(crate) fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const HEADER: usize = 16;
    let length = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    if length < HEADER || length > bytes.len() {
        return None;
    }
    let next = length.next_multiple_of(4).min(bytes.len());
    Some((&bytes[..length], &bytes[next..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split_message;

    proptest! {
        #[test]
        fn splitting_any_bytes_ends(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let mut rest = &bytes[..];
            while let Some((message, after)) = split_message(rest) {
                prop_assert!(message.len() >= 16 && after.len() < rest.len());
                rest = after;
            }
        }
    }
}
