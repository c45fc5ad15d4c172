//! Many datagrams in one call: several messages, and several datagrams in each.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::address::{self, Family, LocalAddress};
use super::control;
use super::sys::{self, MAX_RECEIVED, Slot};

/// The longest message: as long as a UDP datagram, or a train of them, can be.
const MESSAGE_BYTES: usize = 1 << 16;

/// Bytes from one buffer to the next. Not a power of two: the beginnings of all buffers, which is all that single datagrams
/// use, would share a few sets of the cache.
const STRIDE_BYTES: usize = MESSAGE_BYTES + 1_664;

/// What is asked for in one call: about as much as makes two super-packets for the TUN, which stay in the cache until
/// they are there.
const WANTED_BYTES: usize = 128 << 10;

/// Messages asked for in the first call.
const FIRST_WANTED: usize = 4;

/// Messages asked for in a call, at least.
const MIN_WANTED: usize = 2;

/// After so many calls in a row that found something at one socket, the other one is asked first for once.
const MAX_STREAK: u32 = 16;

/// A datagram that was received.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The UDP payload, to be decrypted in place.
    pub bytes: &'a mut [u8],
    /// Who sent it.
    pub source: SocketAddr,
    /// Which address of this machine it was sent to.
    pub local: Option<LocalAddress>,
    /// The outer header's traffic class (TOS).
    pub traffic_class: u8,
}

/// What one call received, with the buffers for it, to be used again and again.
///
/// The buffers are 4.2 MiB of address space, of which only what was used once is memory.
pub struct Received {
    buffer: Box<[u8]>,
    slots: Box<[Slot]>,
    messages: Vec<Message>,
    wanted: usize,
    drained: bool,
    truncated: u64,
    first: Family,
    streak: u32,
}

/// A received message: datagrams of `segment` bytes from one sender, the last of which may be shorter.
struct Message {
    length: usize,
    segment: usize,
    source: SocketAddr,
    local: Option<LocalAddress>,
    traffic_class: u8,
}

impl Default for Received {
    fn default() -> Self {
        Self::new()
    }
}

impl Received {
    /// Buffers without anything in them.
    pub fn new() -> Self {
        Self {
            // Zeroed by the kernel, page by page, when first written to.
            buffer: vec![0; STRIDE_BYTES * MAX_RECEIVED].into_boxed_slice(),
            slots: vec![Slot::EMPTY; MAX_RECEIVED].into_boxed_slice(),
            messages: Vec::with_capacity(MAX_RECEIVED),
            wanted: FIRST_WANTED,
            drained: false,
            truncated: 0,
            first: Family::V4,
            streak: 0,
        }
    }

    /// The datagrams, in the order of their arrival.
    pub fn datagrams(&mut self) -> impl Iterator<Item = Datagram<'_>> {
        let buffers = self.buffer.chunks_mut(STRIDE_BYTES);
        buffers.zip(&self.messages).flat_map(|(buffer, message)| {
            let datagrams = buffer[..message.length].chunks_mut(message.segment);
            datagrams.map(|bytes| Datagram {
                bytes,
                source: message.source,
                local: message.local,
                traffic_class: message.traffic_class,
            })
        })
    }

    /// How many messages they came in: trains, and datagrams by themselves.
    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    /// How many datagrams there are.
    pub fn len(&self) -> usize {
        let datagrams = |message: &Message| message.length.div_ceil(message.segment);
        self.messages.iter().map(datagrams).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.messages.iter().all(|message| message.length == 0)
    }

    /// Bytes of all datagrams, without headers.
    pub fn bytes(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| message.length as u64)
            .sum()
    }

    /// Whether the last call emptied the socket it took this from, so that asking again at once is likely in vain.
    pub fn drained(&self) -> bool {
        self.drained
    }

    /// Messages dropped so far because they were too long or had an address that isn't one.
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Which socket to ask first.
    pub(super) fn first(&mut self) -> Family {
        if self.streak >= MAX_STREAK {
            self.streak = 0;
            self.first = match self.first {
                Family::V4 => Family::V6,
                Family::V6 => Family::V4,
            };
        }
        self.first
    }

    /// Takes what this socket has, and says whether that was anything.
    pub(super) fn fill(&mut self, family: Family, socket: BorrowedFd<'_>) -> io::Result<bool> {
        self.messages.clear();
        self.drained = true;
        let Some(count) = self.receive(socket)? else {
            return Ok(false);
        };
        for slot in &self.slots[..count] {
            let message = Message::new(slot);
            self.truncated += u64::from(message.is_none());
            self.messages.push(message.unwrap_or(Message::NONE));
        }
        self.drained = count < self.wanted;
        self.adapt(count);
        if family == self.first {
            self.streak += 1;
        } else {
            self.first = family;
            self.streak = 1;
        }
        Ok(true)
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        let mut tried = false;
        loop {
            let buffers = self.buffer.chunks_mut(STRIDE_BYTES);
            let buffers = buffers.map(|buffer| &mut buffer[..MESSAGE_BYTES]);
            match sys::receive(socket, &mut self.slots[..self.wanted], buffers) {
                Ok(0) => return Ok(None),
                Ok(count) => return Ok(Some(count)),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(Errno::AGAIN) => return Ok(None),
                    // Perhaps what an earlier datagram met, and now forgotten.
                    _ if !tried => tried = true,
                    _ => return Err(error),
                },
            }
        }
    }

    /// Asks for fewer messages when they are trains, for more when they are short and there seem to be more.
    fn adapt(&mut self, count: usize) {
        let bytes: usize = self.messages.iter().map(|message| message.length).sum();
        let mean = (bytes / count).max(1);
        let enough = (WANTED_BYTES / mean).clamp(MIN_WANTED, MAX_RECEIVED);
        if enough < self.wanted {
            self.wanted = enough;
        } else if count == self.wanted {
            self.wanted = enough.min(self.wanted * 2);
        }
    }
}

impl Message {
    /// In place of one that isn't to be used.
    const NONE: Self = Self {
        length: 0,
        segment: 1,
        source: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        local: None,
        traffic_class: 0,
    };

    /// Reads what the kernel says of a message; `None` when it isn't whole.
    fn new(slot: &Slot) -> Option<Self> {
        if slot.truncated {
            return None;
        }
        let mut message = Self {
            length: slot.length.min(MESSAGE_BYTES),
            segment: slot.length.max(1),
            source: address::decode(slot.name())?,
            local: None,
            traffic_class: 0,
        };
        for extra in control::messages(slot.control()) {
            match (extra.level, extra.kind) {
                // A byte here, an int for IPv6; the first byte of an int only where the least significant is there.
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    message.traffic_class = *extra.data.first()?;
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    message.traffic_class = control::int(extra.data)? as u8;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let segment = usize::try_from(control::int(extra.data)?).ok()?;
                    message.segment = segment.max(1);
                }
                _ => message.local = LocalAddress::decode(&extra).or(message.local),
            }
        }
        Some(message)
    }
}
