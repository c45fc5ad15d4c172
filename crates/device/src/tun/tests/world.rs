//! Network namespaces, and a road of two TUNs between them.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::join::Joiner;
use crate::offloads::Offloads;
use crate::split::{FRAME_BYTES, Frame};
use crate::tun::{Queue, Tun};

/// Packets that are joined at once at most, as a received batch would have.
const BATCH_PACKETS: usize = 128;

/// Whether TUNs and namespaces can be made here; if not, the test is skipped.
pub(crate) fn possible(test: &str) -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "needs root, for network namespaces and TUNs"
    } else if !std::path::Path::new(crate::tun::DEVICE).exists() {
        "needs /dev/net/tun"
    } else {
        return true;
    };
    crate::testing::skip(test, reason);
    false
}

/// A network namespace, which ends with the last thing in it.
pub(crate) struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let file = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            Self { file: file.into() }
        });
        let namespace = made.join().unwrap();
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs this in the namespace.
    pub(crate) fn run<R: Send>(&self, what: impl FnOnce() -> R + Send) -> R {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
                what()
            });
            inside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &str) -> String {
        let output = self.run(|| {
            Command::new("ip")
                .args(arguments.split_whitespace())
                .output()
                .unwrap()
        });
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {arguments}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn tun(&self, name: &str, queues: usize, offloads: &Arc<Offloads>) -> Tun {
        self.run(|| Tun::create(name, queues, 1_420, offloads).unwrap())
    }

    /// A TUN that is up and has these addresses.
    pub(crate) fn tun_with(
        &self,
        addresses: &[&str],
        queues: usize,
        offloads: &Arc<Offloads>,
    ) -> Tun {
        let tun = self.tun("tun0", queues, offloads);
        for address in addresses {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            self.ip(&format!("address add {address} dev tun0 {nodad}"));
        }
        self.ip("link set tun0 up");
        tun
    }
}

/// Two namespaces, each with a TUN, and what carries packets from one to the other.
pub(crate) struct Road {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
    pub(crate) tuns: [Arc<Tun>; 2],
    /// What was carried from near to far.
    pub(crate) there: Arc<Carried>,
    /// What was carried from far to near.
    pub(crate) back: Arc<Carried>,
    stop: Arc<AtomicBool>,
    carriers: Vec<JoinHandle<()>>,
}

/// Counts of what went one way.
#[derive(Default)]
pub(crate) struct Carried {
    pub(crate) frames: AtomicUsize,
    /// Frames that made more than one packet.
    pub(crate) super_packets: AtomicUsize,
    /// Packets in the longest of them.
    pub(crate) longest: AtomicUsize,
    pub(crate) packets: AtomicUsize,
    pub(crate) writes: AtomicUsize,
    pub(crate) errors: AtomicUsize,
}

impl Carried {
    pub(crate) fn get(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::Relaxed)
    }
}

impl Road {
    pub(crate) const NEAR: [IpAddr; 2] = Self::addresses(1);
    pub(crate) const FAR: [IpAddr; 2] = Self::addresses(2);

    const fn addresses(last: u8) -> [IpAddr; 2] {
        [
            IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, last)),
            IpAddr::V6(std::net::Ipv6Addr::new(
                0xfd77,
                0,
                0,
                0,
                0,
                0,
                0,
                last as u16,
            )),
        ]
    }

    pub(crate) fn new(queues: usize, offloads: &Arc<Offloads>) -> Self {
        let [near, far] = [Namespace::new(), Namespace::new()];
        let tuns = [
            Arc::new(near.tun_with(&["10.77.0.1/24", "fd77::1/64"], queues, offloads)),
            Arc::new(far.tun_with(&["10.77.0.2/24", "fd77::2/64"], queues, offloads)),
        ];
        let (there, back) = (Arc::<Carried>::default(), Arc::<Carried>::default());
        let stop = Arc::new(AtomicBool::new(false));
        let mut carriers = Vec::new();
        for queue in 0..queues {
            for (from, to, carried) in [(0, 1, &there), (1, 0, &back)] {
                let tuns = tuns.clone();
                let (stop, carried, offloads) =
                    (Arc::clone(&stop), Arc::clone(carried), Arc::clone(offloads));
                carriers.push(thread::spawn(move || {
                    let ends = [&tuns[from].queues()[queue], &tuns[to].queues()[queue]];
                    carry(ends, &carried, &offloads, &stop);
                }));
            }
        }
        Self {
            near,
            far,
            tuns,
            there,
            back,
            stop,
            carriers,
        }
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for carrier in self.carriers.drain(..) {
            let _ = carrier.join();
        }
    }
}

fn carry([from, to]: [&Queue; 2], carried: &Carried, offloads: &Offloads, stop: &AtomicBool) {
    let count = |counter: &AtomicUsize, by: usize| {
        counter.fetch_add(by, Ordering::Relaxed);
    };
    let mut joiner = Joiner::new();
    let mut buffer = vec![0; FRAME_BYTES];
    let mut packets: Vec<Vec<u8>> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let readable = wait_for(from, 20);
        packets.clear();
        while readable && packets.len() < BATCH_PACKETS {
            let length = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(_) => {
                    count(&carried.errors, 1);
                    break;
                }
            };
            let frame = Frame::parse(&buffer[..length]).unwrap();
            count(&carried.frames, 1);
            count(&carried.super_packets, usize::from(frame.packets() > 1));
            carried
                .longest
                .fetch_max(frame.packets(), Ordering::Relaxed);
            for index in 0..frame.packets() {
                let mut packet = vec![0; frame.packet_length(index)];
                frame.write_packet(index, &mut packet);
                packets.push(packet);
            }
        }
        count(&carried.packets, packets.len());
        let slices = packets.iter().map(|packet| &packet[..]);
        joiner.join(slices, offloads, |parts: &[IoSlice<'_>], _| {
            count(&carried.writes, 1);
            if to.write(parts).is_err() {
                count(&carried.errors, 1);
            }
        });
    }
}

/// Whether there is something to read within so many milliseconds.
pub(crate) fn wait_for(from: impl AsFd, milliseconds: i64) -> bool {
    let timeout = Timespec {
        tv_sec: milliseconds / 1_000,
        tv_nsec: milliseconds % 1_000 * 1_000_000,
    };
    let mut polled = [PollFd::new(&from, PollFlags::IN)];
    matches!(rustix::event::poll(&mut polled, Some(&timeout)), Ok(1..))
}

/// The next frame within a second.
pub(crate) fn read_one(queue: &Queue) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; FRAME_BYTES];
    wait_for(queue, 1_000);
    let length = queue.read(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}
