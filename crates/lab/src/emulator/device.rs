//! The TUN of a direction and the loop that carries packets through it.

use std::fs;
use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::Direction;
use super::line::{Counts, Lines};

/// As wide as a TUN can be: the road's MTU is made elsewhere.
const MTU: u16 = 65_535;

/// Packets that may wait for the reader: 20 ms at 5 Gbit/s.
const TUN_QUEUE: u32 = 8192;

/// Packets read or written before the other side gets its turn.
const BATCH: usize = 64;

/// A thread wakes about this much after the time it asked for, so it asks for that much earlier; and what is due by then
/// leaves with what is due now, which saves a wake-up per packet on a fast road.
const WAKING: Duration = Duration::from_micros(50);

/// As many packets at once show a fast road: then a pause gathers more of them for one wake-up.
const BUSY: usize = 8;

/// Makes the TUN and switches it on.
pub(super) fn open(direction: &Direction) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new()
        .name(&direction.name)
        .mtu(MTU)
        .with(|options| {
            options.tx_queue_len(TUN_QUEUE);
        })
        .build_sync()?;
    device.set_nonblocking(true)?;
    device.enabled(true)?;
    Ok(device)
}

/// Asks for exact timers and to go before others. Without the right to that the delay is less exact, no more.
pub(super) fn be_prompt() {
    let _ = nix::sys::prctl::set_timerslack(1);
    let _ = rustix::process::setpriority_process(None, -20);
}

/// Asks for a real-time turn for every thread of this process: on a busy machine, where even the nicest thread waits for
/// others now and then, this keeps late packets below 0.1 ms. What is not granted is gone without.
pub(super) fn be_real_time() {
    let _ = Command::new("chrt")
        .args([
            "--all-tasks",
            "--rr",
            "--pid",
            "1",
            &std::process::id().to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Carries packets until the device goes away.
pub(super) fn carry(device: &SyncDevice, direction: &Direction, counts: &Counts) -> io::Result<()> {
    let mut lines = Lines::new(direction, Instant::now());
    let mut random = rand::rng();
    let mut buffer = vec![0; usize::from(MTU)];
    loop {
        wait(device, lines.next_due())?;
        let mut read = 0;
        while read < BATCH {
            match device.recv(&mut buffer) {
                Ok(length) => {
                    read += 1;
                    let chance = || random.random_range(0..1_000_000);
                    if !lines.push(&buffer[..length], Instant::now(), chance) {
                        counts.drop_one();
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        for _ in 0..BATCH {
            let Some((packet, line)) = lines.pop_due(Instant::now() + WAKING) else {
                break;
            };
            // What the kernel does not take (a malformed packet) is lost, as on any road.
            if device.send(&packet).is_err() {
                counts.drop_one();
            }
            line.recycle(packet);
        }
        if (BUSY..BATCH).contains(&read) {
            thread::sleep(WAKING);
        }
    }
}

/// Waits for a packet, or until one is due.
fn wait(device: &SyncDevice, due: Option<Instant>) -> io::Result<()> {
    let timeout = due.map(|due| due.saturating_duration_since(Instant::now() + WAKING));
    let timeout = timeout.map(|d: Duration| Timespec {
        tv_sec: d.as_secs().cast_signed(),
        tv_nsec: i64::from(d.subsec_nanos()),
    });
    match poll(&mut [PollFd::new(device, PollFlags::IN)], timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Packets that the TUN itself dropped because the reader was too slow.
pub(super) fn overrun(name: &str) -> u64 {
    fs::read_to_string(format!("/sys/class/net/{name}/statistics/tx_dropped"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}
