//! ICMP echo requests: does the tunnel still pass traffic?

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

const BETWEEN_REQUESTS: Duration = Duration::from_millis(300);
/// Replies read at once; the rest is read the next time.
const REPLIES_AT_ONCE: usize = 256;

/// A train of echo requests to one address.
#[derive(Debug)]
pub(crate) struct Echo {
    socket: Socket,
    version_4: bool,
    identifier: u16,
    sequence: u16,
}

impl Echo {
    /// Opens a raw socket (needs `CAP_NET_RAW`) that hears that address only.
    pub(crate) fn open(address: IpAddr) -> io::Result<Self> {
        let version_4 = address.is_ipv4();
        let socket = if version_4 {
            Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?
        } else {
            Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?
        };
        socket.connect(&SocketAddr::new(address, 0).into())?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            version_4,
            identifier: (std::process::id() & 0xffff) as u16 ^ 0x5753,
            sequence: 0,
        })
    }

    /// Sends one request. What can't be sent is a request without a reply.
    pub(crate) fn request(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        let kind = if self.version_4 { 8 } else { 128 };
        let mut packet = [
            kind, 0, 0, 0, 0, 0, 0, 0, b'w', b'i', b'r', b'e', b's', b'p', b'd', b'!',
        ];
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        // The kernel fills in the checksum of ICMPv6, whose pseudo-header only it knows.
        if self.version_4 {
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let _lost = self.socket.send(&packet);
    }

    /// Has a reply to any request come in since the last look?
    pub(crate) fn replied(&mut self) -> bool {
        let mut buffer = [0_u8; 256];
        let mut replied = false;
        for _ in 0..REPLIES_AT_ONCE {
            match self.socket.read(&mut buffer) {
                Ok(length) => replied |= self.is_reply(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An ICMP error about an earlier request; the next read goes on.
                Err(_) => {}
            }
        }
        replied
    }

    fn is_reply(&self, packet: &[u8]) -> bool {
        let (kind, message) = if self.version_4 {
            let header = usize::from(packet.first().copied().unwrap_or_default() & 0xf) * 4;
            (0, packet.get(header..).unwrap_or_default())
        } else {
            (129, packet)
        };
        message.len() >= 8 && message[0] == kind && message[4..6] == self.identifier.to_be_bytes()
    }
}

/// Does the address answer within that time?
pub(crate) fn answers(address: IpAddr, within: Duration) -> bool {
    let Ok(mut echo) = Echo::open(address) else {
        return false;
    };
    let deadline = Instant::now() + within;
    let mut next = Instant::now();
    while Instant::now() < deadline {
        if Instant::now() >= next {
            echo.request();
            next += BETWEEN_REQUESTS;
        }
        std::thread::sleep(Duration::from_millis(10));
        if echo.replied() {
            return true;
        }
    }
    false
}

fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or_default()))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn a_packet_with_its_checksum_sums_to_zero() {
        let mut packet = [8, 0, 0, 0, 0x12, 0x34, 0, 1, 1, 2, 3];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }
}
