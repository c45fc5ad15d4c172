//! A flood of handshakes: initiations of nobody from random addresses, which only have MAC1 right.
//!
//! Both ends, the load and the flood share the machine's cores, so what making the flood costs is taken from what is measured.
//! Whole frames, made beforehand but for the source, go to the cable by the hundred with one call, past sockets, routes and
//! filters of the crowd's side.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockType, bind, sendmmsg, socket,
};
use rand::Rng;
use wirespeed_protocol::PublicKey;
use wirespeed_protocol::wire::INITIATION_BYTES;

use crate::BenchError;
use crate::crowd::Crowd;
use crate::forge;
use crate::place::Place;
use crate::road::{CROWD_CABLE, Road, crowd_address};

/// Different messages; their addresses differ anyway.
const FORGED: usize = 2_048;
/// Frames sent with one call.
const AT_ONCE: usize = 128;
/// Between two calls: each wakes a thread up, which costs as much as some frames.
const PAUSE: Duration = Duration::from_millis(1);
/// A flood that fell behind catches up by no more than this.
const BEHIND: Duration = Duration::from_millis(20);

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const FRAME_BYTES: usize = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + INITIATION_BYTES;

/// Forged initiations without an end. Dropping it ends it.
pub(crate) struct Flood {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<f64>>,
}

impl Flood {
    /// So many a second to a daemon at the far end, or to a port where nobody reads them.
    pub(crate) fn start(
        road: &Road,
        to: SocketAddrV4,
        key: PublicKey,
        per_second: f64,
    ) -> Result<Self, BenchError> {
        // Takes the answers, or the crowd's kernel would answer each in turn.
        let listens = Crowd::open(&road.crowd)?;
        let from_port = listens.port()?;
        let (socket, own) = open(&road.crowd)?;
        let far = link(&road.far)?;
        let ends = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut frames: Vec<Frame> = (0..FORGED)
                .map(|_| Frame::new([far, own], from_port, to, &forge::initiation(&key)))
                .collect();
            let sent = run(&socket, &mut frames, per_second, &flag);
            drop(listens);
            sent
        });
        Ok(Self {
            ends,
            thread: Some(thread),
        })
    }

    /// Ends it; how many a second were sent.
    pub(crate) fn stop(mut self) -> f64 {
        self.ends.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or(0.0)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn run(socket: &OwnedFd, frames: &mut [Frame], per_second: f64, ends: &AtomicBool) -> f64 {
    let mut rng = rand::rng();
    let begun = Instant::now();
    let mut paced_from = begun;
    let (mut sent, mut paced, mut next) = (0, 0_u64, 0);
    while !ends.load(Ordering::Relaxed) {
        let due = (paced_from.elapsed().as_secs_f64() * per_second) as u64;
        if (due - paced) as f64 > BEHIND.as_secs_f64() * per_second {
            (paced_from, paced) = (Instant::now(), 0);
            continue;
        }
        while paced < due {
            let count = usize::try_from(due - paced)
                .unwrap_or(AT_ONCE)
                .min(AT_ONCE)
                .min(frames.len() - next);
            let batch = &mut frames[next..next + count];
            for frame in batch.iter_mut() {
                frame.set_source(crowd_address(rng.next_u32()));
            }
            sent += send(socket, batch);
            next = (next + count) % frames.len();
            paced += count as u64;
        }
        thread::sleep(PAUSE);
    }
    sent as f64 / begun.elapsed().as_secs_f64()
}

/// Sends frames with one call; how many went. One that the cable refuses is lost, as on any.
fn send(socket: &OwnedFd, frames: &[Frame]) -> usize {
    let parts: Vec<[IoSlice<'_>; 1]> = frames
        .iter()
        .map(|frame| [IoSlice::new(&frame.0)])
        .collect();
    let nowhere_else: Vec<Option<LinkAddr>> = vec![None; frames.len()];
    let mut headers = MultiHeaders::preallocate(frames.len(), None);
    sendmmsg(
        socket.as_raw_fd(),
        &mut headers,
        &parts,
        &nowhere_else,
        [],
        MsgFlags::empty(),
    )
    .map_or(0, Iterator::count)
}

/// A socket for whole frames at the crowd's end of its cable, and that end's hardware address.
fn open(crowd: &Place) -> Result<(OwnedFd, [u8; 6]), BenchError> {
    crowd
        .run(|| -> io::Result<_> {
            let address = link_address()?;
            // With no protocol it is handed nothing of what arrives.
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                None,
            )?;
            bind(socket.as_raw_fd(), &address)?;
            Ok((socket, address.addr().unwrap_or_default()))
        })?
        .map_err(BenchError::system("open the flood's socket"))
}

/// The hardware address of the far end of the crowd's cable.
fn link(far: &Place) -> Result<[u8; 6], BenchError> {
    far.run(link_address)?
        .map(|address| address.addr().unwrap_or_default())
        .map_err(BenchError::system("look up the crowd's cable"))
}

fn link_address() -> io::Result<LinkAddr> {
    getifaddrs()?
        .filter(|interface| interface.interface_name == CROWD_CABLE)
        .find_map(|interface| interface.address?.as_link_addr().copied())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// An initiation in a datagram, in a packet, in a frame.
struct Frame([u8; FRAME_BYTES]);

impl Frame {
    /// `hardware`: addresses of the receiver and of the sender.
    fn new(
        hardware: [[u8; 6]; 2],
        from_port: u16,
        to: SocketAddrV4,
        message: &forge::Initiation,
    ) -> Self {
        let mut bytes = [0; FRAME_BYTES];
        let (ethernet, packet) = bytes.split_at_mut(ETHERNET_BYTES);
        ethernet[..12].copy_from_slice(hardware.as_flattened());
        ethernet[12..].copy_from_slice(&0x0800_u16.to_be_bytes());
        let packet_bytes = (FRAME_BYTES - ETHERNET_BYTES) as u16;
        let (ip, datagram) = packet.split_at_mut(IPV4_BYTES);
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&packet_bytes.to_be_bytes());
        ip[8] = 64;
        ip[9] = 17;
        ip[16..].copy_from_slice(&to.ip().octets());
        // A checksum of 0 is none, which IPv4 allows.
        datagram[..2].copy_from_slice(&from_port.to_be_bytes());
        datagram[2..4].copy_from_slice(&to.port().to_be_bytes());
        datagram[4..6].copy_from_slice(&(packet_bytes - IPV4_BYTES as u16).to_be_bytes());
        datagram[UDP_BYTES..].copy_from_slice(message);
        Self(bytes)
    }

    fn set_source(&mut self, source: Ipv4Addr) {
        let ip = &mut self.0[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES];
        ip[12..16].copy_from_slice(&source.octets());
        ip[10..12].fill(0);
        let sum = ip
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum::<u32>();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_datagram_with_a_right_checksum() {
        let to = "10.97.0.2:51820".parse().unwrap();
        let mut frame = Frame::new([[2; 6], [4; 6]], 7, to, &[9; INITIATION_BYTES]);
        // As in RFC 1071: with its own checksum in place a header sums up to all ones.
        for source in [[10, 64, 0, 1], [10, 79, 255, 255]] {
            frame.set_source(source.into());
            let header = &frame.0[14..34];
            let sum: u32 = header
                .chunks(2)
                .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
                .sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
            assert_eq!(header[12..16], source);
        }
        assert_eq!(frame.0[..14], [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 8, 0]);
        assert_eq!(frame.0[34..42], [0, 7, 0xca, 0x6c, 0, 156, 0, 0]);
        assert_eq!(frame.0[16..18], 176_u16.to_be_bytes());
        assert_eq!(frame.0[42..], [9; INITIATION_BYTES]);
    }
}
