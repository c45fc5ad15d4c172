//! What goes through a tunnel to try it: every byte is known, and none may be missing.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use super::{End, Outer, Program};

const PATIENCE: Duration = Duration::from_secs(10);

/// Sends bytes over TCP from one end to the other and checks each of them.
pub(crate) fn tcp(from: &End, to: &End, family: Outer, bytes: usize) {
    let listener = to
        .inside({
            let address = to.inner(family);
            move || TcpListener::bind((address, 0)).unwrap()
        })
        .join()
        .unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let count = match stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count.unwrap(),
            };
            if count == 0 {
                return at;
            }
            for (i, byte) in buffer[..count].iter().enumerate() {
                assert_eq!(*byte, pattern(at + i), "byte {} of the stream", at + i);
            }
            at += count;
        }
    });
    let sender = from.inside(move || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut at = 0;
        while at < bytes {
            let count = (bytes - at).min(1 << 16);
            let buffer: Vec<u8> = (at..at + count).map(pattern).collect();
            stream.write_all(&buffer).unwrap();
            at += count;
        }
    });
    sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), bytes);
}

/// Sends datagrams of all lengths from one end to the other; each comes once, whole, and in its place.
pub(crate) fn udp(from: &End, to: &End, family: Outer, count: usize) {
    const LONGEST: usize = 1_372;
    let (sender, receiver) = udp_sockets(from, to, family);
    let datagram = |number: usize| {
        let length = 4 + number * 7 % (LONGEST - 3);
        let mut bytes: Vec<u8> = (0..length).map(|i| pattern(number + i)).collect();
        bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
        bytes
    };
    let mut buffer = [0; 2_048];
    // A few at a time, so that no queue on the way is full.
    for first in (0..count).step_by(32) {
        let some = (first..count.min(first + 32)).filter(|number| {
            !leaves_zero(from, family) || udp_sum(&sender, &datagram(*number)) != ZERO
        });
        for number in some.clone() {
            sender.send(&datagram(number)).unwrap();
        }
        for number in some {
            let (bytes, _) = receiver
                .recv_from(&mut buffer)
                .unwrap_or_else(|error| panic!("datagram {number} of {count}: {error}"));
            let place = u32::from_be_bytes(buffer[..4].try_into().unwrap()) as usize;
            assert_eq!(place, number, "order from {:?}", from.program);
            assert!(buffer[..bytes] == datagram(number), "datagram {number}");
        }
    }
}

/// Sends datagrams whose UDP checksum comes to zero, which is written as its other zero, 0xffff: a zero says that there is no
/// checksum, and over IPv6 there has to be one (RFC 8200, 8.1). Each comes, and what doesn't the kernel counted as wrong
/// where the sender is known to leave the zero.
pub(crate) fn checksums_of_zero(from: &End, to: &End, family: Outer) {
    const COUNT: u64 = 8;
    const WRONG: &str = "Udp6InCsumErrors";
    let (sender, receiver) = udp_sockets(from, to, family);
    let pause = Duration::from_millis(100);
    receiver.set_read_timeout(Some(pause)).unwrap();
    let before = to.counter(WRONG);
    for number in 0..COUNT {
        let mut bytes = [number as u8; 200];
        bytes[..2].fill(0);
        // The first word makes up for all others.
        let missing = ZERO - udp_sum(&sender, &bytes);
        bytes[..2].copy_from_slice(&missing.to_be_bytes());
        sender.send(&bytes).unwrap();
    }
    let (mut came, mut wrong) = (0, 0);
    let end = Instant::now() + PATIENCE;
    while came + wrong < COUNT && Instant::now() < end {
        match receiver.recv_from(&mut [0; 256]) {
            Ok(_) => came += 1,
            Err(_) => wrong = to.counter(WRONG) - before,
        }
    }
    let expected = if leaves_zero(from, family) {
        COUNT - wrong
    } else {
        COUNT
    };
    assert_eq!(came, expected, "from {:?}, {wrong} wrong", from.program);
}

/// Whether a program completes the checksums that the kernel left to it without minding a zero: wireguard-go, in
/// `gsoNoneChecksum` and `gsoSplit` of `tun/offload_linux.go`. One datagram in 65,536 is refused for that behind its tunnel.
fn leaves_zero(from: &End, family: Outer) -> bool {
    from.program == Program::WireguardGo && family == Outer::V6
}

/// The sum of a datagram whose checksum comes to zero.
const ZERO: u16 = 0xffff;

/// The one's complement sum of a datagram with its pseudo-header (RFC 768), without its checksum.
fn udp_sum(sender: &UdpSocket, payload: &[u8]) -> u16 {
    let mut bytes = Vec::new();
    for end in [sender.local_addr(), sender.peer_addr()] {
        let end: SocketAddr = end.unwrap();
        match end.ip() {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.extend(end.port().to_be_bytes());
    }
    let length = (8 + payload.len()) as u16;
    for word in [17, length, length] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    // An odd last byte counts as if a zero followed.
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let (words, _) = bytes.as_chunks();
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// A socket that sends at one end, connected to one that receives at the other.
fn udp_sockets(from: &End, to: &End, family: Outer) -> (UdpSocket, UdpSocket) {
    let receiver = to
        .inside({
            let address = to.inner(family);
            move || UdpSocket::bind((address, 0)).unwrap()
        })
        .join()
        .unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = receiver.local_addr().unwrap();
    let sender = from
        .inside({
            let own = from.inner(family);
            move || {
                let socket = UdpSocket::bind((own, 0)).unwrap();
                socket.connect(address).unwrap();
                socket
            }
        })
        .join()
        .unwrap();
    (sender, receiver)
}

/// Repeats at no length a packet has.
fn pattern(at: usize) -> u8 {
    (at % 251) as u8 ^ (at >> 13) as u8
}
