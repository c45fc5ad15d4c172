//! The TUN: the kernel's side of the tunnel.
//!
//! Each queue is read and written by itself. What is read and written are frames: a header that tells of super-packets and missing checksums,
//! and a packet. `split` and `join` make packets of frames and back.

mod bpf;
mod ioctl;
mod offload;
mod steering;
pub(crate) mod vnet;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use self::vnet::{GSO_ECN, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, PLAIN, VNET_HEADER_BYTES};
use crate::link::message::{Content, Link, Request};
use crate::link::socket::Netlink;
use crate::offloads::{Offload, Offloads};
use crate::split::Frame;

const DEVICE: &str = "/dev/net/tun";

/// Queues the kernel gives one TUN at most.
const MAX_QUEUES: usize = 256;

/// Segments of a super-packet where nothing limits them, which is the kernel's own default.
const UNLIMITED_SEGMENTS: u32 = 65_535;

/// Why there is no TUN.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// No name for an interface.
    #[error(
        "{0:?} can't be the name of an interface; take 1 to 15 letters, digits or any of _=+.-"
    )]
    BadName(String),
    /// The kernel gives 1 to 256.
    #[error("a TUN has 1 to 256 queues, not {0}; take fewer workers")]
    BadQueues(usize),
    /// The kernel has no TUN, or the container wasn't given it.
    #[error(
        "{DEVICE} isn't there ({0}); load the kernel module tun (modprobe tun), or give the container the device"
    )]
    NoDevice(io::Error),
    /// Not root.
    #[error(
        "making the interface {name} was refused ({source}); run it as root, or with CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// The interface.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another program has it.
    #[error(
        "the interface {0} is in use by another program; end that one first, or take another name"
    )]
    InUse(String),
    /// There is an interface of this name, of another kind.
    #[error(
        "an interface {0} exists and is no TUN; delete it (ip link delete {0}), or take another name"
    )]
    NotTun(String),
    /// A TUN that was made for one queue can't get more.
    #[error(
        "the interface {0} exists and was made for a single queue; make it anew (ip tuntap add {0} mode tun multi_queue), or run with one worker"
    )]
    SingleQueue(String),
    /// A call that failed without a reason of its own.
    #[error("could not {what} of the interface {name}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The interface.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Frames in the kernel's queue, as many as a network card's has: enough for the windows of ten TCP flows in super-packets. With
/// the TUN's own 500, flows that begin together lost some each time.
const QUEUE_FRAMES: u32 = 1_000;

/// A TUN with its queues. The interface goes when this is dropped, unless it was made persistent by someone else.
pub struct Tun {
    queues: Vec<Queue>,
    index: u32,
    name: String,
    mtu: AtomicUsize,
    /// Whether it was there before us, and so stays behind us.
    existing: bool,
    limited: AtomicBool,
    netlink: Mutex<Netlink>,
}

/// One queue: non-blocking, to be read and written by any thread.
pub struct Queue {
    file: OwnedFd,
    offloads: Arc<Offloads>,
}

impl Tun {
    /// Makes the interface, down, with this MTU, or takes an existing persistent TUN as it is. Finds out which offloads work.
    ///
    pub fn create(
        name: &str,
        queues: usize,
        mtu: usize,
        offloads: &Arc<Offloads>,
    ) -> Result<Self, TunError> {
        check_name(name)?;
        if queues == 0 || queues > MAX_QUEUES {
            return Err(TunError::BadQueues(queues));
        }
        let failed = |what| {
            move |source| TunError::System {
                what,
                name: name.to_owned(),
                source,
            }
        };
        let mut netlink = Netlink::open(0).map_err(failed("open a netlink socket to ask"))?;
        let Attached {
            files,
            existing,
            multi_queue,
        } = attach(name, queues, &mut netlink)?;
        let first = &files[0];
        ioctl::set_header(first, VNET_HEADER_BYTES as u8)
            .map_err(failed("set the frame header"))?;
        let mut link = link_by_name(&mut netlink, name).map_err(failed("learn index and MTU"))?;
        if !existing {
            let request = Request::set_link(link.index)
                .with(libc::IFLA_MTU, &(mtu as u32).to_ne_bytes())
                .with(libc::IFLA_TXQLEN, &QUEUE_FRAMES.to_ne_bytes());
            netlink
                .ask(request)
                .map_err(failed("set MTU and queue length"))?;
            link.mtu = Some(mtu as u32);
            // As the kernel's driver does: a tunnel has the addresses it is given. `wg-quick save` would keep another.
            if let Err(error) = netlink.ask(Request::no_automatic_address(link.index)) {
                log::debug!("{name} may get a link-local address: {error}");
            }
        }
        offload::probe(first, offloads);
        if !link.up {
            offload::test_writing(first, offloads);
        }
        if multi_queue && queues > 1 {
            steer(first, offloads);
        }
        let queues = files
            .into_iter()
            .map(|file| Queue {
                file,
                offloads: Arc::clone(offloads),
            })
            .collect();
        Ok(Self {
            queues,
            index: link.index,
            name: name.to_owned(),
            mtu: AtomicUsize::new(link.mtu.map_or(mtu, |mtu| mtu as usize)),
            existing,
            limited: AtomicBool::new(false),
            netlink: Mutex::new(netlink),
        })
    }

    /// What the interface is called now.
    pub fn name(&self) -> String {
        ioctl::interface_name(&self.queues[0]).unwrap_or_else(|_| self.name.clone())
    }

    /// Its index, in the network namespace it was made in.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its queues, as many as were asked for.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// The MTU, as far as is known here.
    pub fn mtu(&self) -> usize {
        self.mtu.load(Ordering::Relaxed)
    }

    /// To be told of a new MTU.
    pub fn set_mtu_seen(&self, mtu: usize) {
        self.mtu.store(mtu, Ordering::Relaxed);
    }

    /// Lets the machine's own TCP put no more than so many segments into a super-packet, so that it is one train of datagrams; `None` takes that
    /// back.
    ///
    /// Not for a machine that forwards: what comes from elsewhere with more segments the kernel would cut itself, and we'd read
    /// it packet by packet.
    pub fn limit_segments(&self, most: Option<u32>) -> io::Result<()> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        // In another network namespace the index may be someone else's.
        let ours = match netlink.ask(Request::link(self.index))?.pop() {
            Some(Content::Link(link)) => link.name == Some(self.name()),
            _ => false,
        };
        if !ours {
            return Err(io::Error::other(
                "the interface is in another network namespace",
            ));
        }
        let segments = most.unwrap_or(UNLIMITED_SEGMENTS);
        let request =
            Request::set_link(self.index).with(libc::IFLA_GSO_MAX_SEGS, &segments.to_ne_bytes());
        netlink.ask(request)?;
        self.limited.store(most.is_some(), Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Tun {
    fn drop(&mut self) {
        if self.existing
            && self.limited.load(Ordering::Relaxed)
            && let Err(error) = self.limit_segments(None)
        {
            log::debug!("the limit of its super-packets stays behind: {error}");
        }
    }
}

impl Queue {
    /// Reads a frame; `Ok(0)` when there is none now. The buffer should have [`FRAME_BYTES`](crate::split::FRAME_BYTES): what doesn't fit is cut off.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.file, &mut *buffer) {
                Ok(length) => return Ok(length),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes a frame, of which the first part begins with its header. A super-packet the kernel doesn't take is cut and written in pieces.
    /// An error of kind `WouldBlock` is to be tried again.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        loop {
            match rustix::io::writev(&self.file, parts) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(Errno::AGAIN.into()),
                Err(error) => return self.write_in_pieces(parts, error),
            }
        }
    }

    #[cold]
    fn write_in_pieces(&self, parts: &[IoSlice<'_>], refused: Errno) -> io::Result<()> {
        let offload = super_packet(parts);
        // An interface that is down may be up again for the pieces, and then the offload would have the blame.
        let Some(offload) = offload.filter(|_| !is_down(&refused.into())) else {
            return Err(refused.into());
        };
        let bytes = parts.iter().flat_map(|part| &part[..]).copied();
        let bytes: Vec<u8> = bytes.collect();
        let Ok(frame) = Frame::parse(&bytes) else {
            return Err(refused.into());
        };
        for index in 0..frame.packets() {
            let mut piece = vec![0; frame.packet_length(index)];
            frame.write_packet(index, &mut piece);
            let parts = [IoSlice::new(&PLAIN), IoSlice::new(&piece)];
            rustix::io::writev(&self.file, &parts)?;
        }
        // The pieces are taken, so it isn't the interface that refuses.
        let why = format!(
            "a super-packet of {} bytes was refused ({}) and its {} packets were not",
            bytes.len(),
            io::Error::from(refused),
            frame.packets(),
        );
        if matches!(refused, Errno::NOMEM | Errno::NOBUFS) {
            self.offloads.failed_once(offload, &why);
        } else {
            self.offloads.degrade(offload, &why);
        }
        Ok(())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether reading or writing failed because the interface was deleted.
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADFD)
}

/// Whether writing failed because the interface is down.
pub fn is_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// The offload that a frame to be written needs.
fn super_packet(parts: &[IoSlice<'_>]) -> Option<Offload> {
    match parts.first()?.get(1)? & !GSO_ECN {
        GSO_TCPV4 => Some(Offload::TunTso4),
        GSO_TCPV6 => Some(Offload::TunTso6),
        GSO_UDP_L4 => Some(Offload::TunUso),
        _ => None,
    }
}

fn check_name(name: &str) -> Result<(), TunError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_=+.-".contains(c);
    let good = (1..=ioctl::NAME_BYTES).contains(&name.len())
        && name.chars().all(allowed)
        && name != "."
        && name != "..";
    if good {
        Ok(())
    } else {
        Err(TunError::BadName(name.to_owned()))
    }
}

/// An open interface.
struct Attached {
    files: Vec<OwnedFd>,
    /// Whether it was there before.
    existing: bool,
    multi_queue: bool,
}

/// Makes the interface, or attaches to a persistent one that nobody else has.
///
/// One queue alone is no case of many: the kernel would set up 256 of them.
fn attach(name: &str, queues: usize, netlink: &mut Netlink) -> Result<Attached, TunError> {
    let refused = |source: io::Error| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => TunError::NotPermitted {
            name: name.to_owned(),
            source,
        },
        Some(libc::EBUSY) => TunError::InUse(name.to_owned()),
        _ => TunError::System {
            what: "attach to a queue",
            name: name.to_owned(),
            source,
        },
    };
    let first = open_device(name)?;
    let mut multi_queue = queues > 1;
    let mut existing = false;
    let made = ioctl::set_interface(&first, name, flags(multi_queue) | libc::IFF_TUN_EXCL);
    if let Err(error) = made {
        if error.raw_os_error() != Some(libc::EBUSY) {
            return Err(refused(error));
        }
        existing = true;
        let link = link_by_name(netlink, name).map_err(refused)?;
        multi_queue = can_be_taken(name, queues, &link)?;
        ioctl::set_interface(&first, name, flags(multi_queue)).map_err(refused)?;
    }
    let mut files = vec![first];
    while files.len() < queues {
        let file = open_device(name)?;
        ioctl::set_interface(&file, name, flags(multi_queue)).map_err(refused)?;
        files.push(file);
    }
    Ok(Attached {
        files,
        existing,
        multi_queue,
    })
}

/// Whether an existing interface is a TUN that nobody has, and if so, whether it has many queues.
fn can_be_taken(name: &str, queues: usize, link: &Link) -> Result<bool, TunError> {
    let name = || name.to_owned();
    let is_tun = link.tun.layer.map(i32::from) == Some(libc::IFF_TUN);
    if link.kind.as_deref() != Some("tun") || !is_tun {
        return Err(TunError::NotTun(name()));
    }
    let multi_queue = link.tun.multi_queue == Some(true);
    // With one queue the kernel itself sees to it.
    let queues_open = link.tun.queues.unwrap_or(0) + link.tun.disabled_queues.unwrap_or(0);
    if multi_queue && queues_open > 0 {
        return Err(TunError::InUse(name()));
    }
    if queues > 1 && !multi_queue {
        return Err(TunError::SingleQueue(name()));
    }
    Ok(multi_queue)
}

fn flags(multi_queue: bool) -> i32 {
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    if multi_queue {
        flags | libc::IFF_MULTI_QUEUE
    } else {
        flags
    }
}

fn open_device(name: &str) -> Result<OwnedFd, TunError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM => TunError::NotPermitted {
            name: name.to_owned(),
            source: error.into(),
        },
        Errno::MFILE | Errno::NFILE => TunError::System {
            what: "open a queue",
            name: name.to_owned(),
            source: error.into(),
        },
        _ => TunError::NoDevice(error.into()),
    })
}

fn link_by_name(netlink: &mut Netlink, name: &str) -> io::Result<Link> {
    match netlink.ask(Request::link_by_name(name))?.pop() {
        Some(Content::Link(link)) => Ok(link),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

fn steer(tun: &OwnedFd, offloads: &Offloads) {
    if !offloads.on(Offload::TunSteering) {
        return;
    }
    let loaded = bpf::load(&steering::program());
    let attached = loaded.and_then(|program| ioctl::set_steering(tun, program));
    let works = attached
        .map_err(|error| format!("the kernel took no program to choose the queue: {error}"));
    offloads.probed(Offload::TunSteering, works);
}

#[cfg(test)]
pub(crate) mod tests;
