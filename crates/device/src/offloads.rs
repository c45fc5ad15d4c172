//! Which offloads are on: probed at the start, switched off one at a time when they fail, and never silently.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Work that the kernel or the network card does for many packets at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// TUN: checksums are left to the device.
    TunChecksum,
    /// TUN: TCP over IPv4 in super-packets of up to 64 KiB.
    TunTso4,
    /// TUN: TCP over IPv6 in super-packets of up to 64 KiB.
    TunTso6,
    /// TUN: UDP in super-packets of up to 64 KiB (Linux 6.2).
    TunUso,
    /// TUN: a program of ours chooses the queue, so that a flow stays on its own.
    TunSteering,
    /// UDP socket: a train of datagrams is sent in one piece (`UDP_SEGMENT`, Linux 4.18).
    UdpGso,
    /// UDP socket: a train of datagrams is received in one piece (`UDP_GRO`, used from Linux 5.12).
    UdpGro,
}

impl Offload {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::TunChecksum,
        Self::TunTso4,
        Self::TunTso6,
        Self::TunUso,
        Self::TunSteering,
        Self::UdpGso,
        Self::UdpGro,
    ];

    /// The name used on the command line, in logs and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TunChecksum => "tun-checksum",
            Self::TunTso4 => "tun-tso4",
            Self::TunTso6 => "tun-tso6",
            Self::TunUso => "tun-uso",
            Self::TunSteering => "tun-steering",
            Self::UdpGso => "udp-gso",
            Self::UdpGro => "udp-gro",
        }
    }
}

impl std::fmt::Display for Offload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How an offload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OffloadState {
    /// In use.
    On,
    /// The kernel hasn't it, or the test at the start found it broken.
    Unsupported,
    /// Not wanted.
    Disabled,
    /// It worked, then it failed, and is off since then.
    Degraded,
}

impl OffloadState {
    const fn from_u8(byte: u8) -> Self {
        match byte {
            0 => Self::On,
            1 => Self::Unsupported,
            2 => Self::Disabled,
            _ => Self::Degraded,
        }
    }
}

/// What the statistics say of one offload.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OffloadReport {
    /// Which one.
    pub offload: Offload,
    /// How it stands.
    pub state: OffloadState,
    /// Why it isn't on, or what its last error was.
    pub reason: Option<String>,
    /// How often it failed.
    pub errors: u64,
}

/// The offloads of a device, shared by all its threads. All are on until something speaks against it.
#[derive(Debug, Default)]
pub struct Offloads {
    entries: [Entry; Offload::ALL.len()],
}

#[derive(Debug, Default)]
struct Entry {
    state: AtomicU8,
    probing: AtomicBool,
    forced: AtomicBool,
    errors: AtomicU64,
    reason: Mutex<Option<String>>,
}

impl Offloads {
    /// All on but these.
    pub fn new(disabled_by_user: &[Offload]) -> Self {
        let offloads = Self::default();
        for offload in disabled_by_user {
            let entry = offloads.entry(*offload);
            entry.set(OffloadState::Disabled);
            *entry.reason() = Some("switched off by an option".to_owned());
        }
        offloads
    }

    /// Has these used also by kernels whose versions are known for breaking them, for a distributor may have mended
    /// them. Tests and later failures still decide.
    #[must_use]
    pub fn forcing(self, forced_by_user: &[Offload]) -> Self {
        for offload in forced_by_user {
            self.entry(*offload).forced.store(true, Ordering::Relaxed);
        }
        self
    }

    /// Whether the kernel's version doesn't matter.
    pub(crate) fn forced(&self, offload: Offload) -> bool {
        self.entry(offload).forced.load(Ordering::Relaxed)
    }

    /// Whether it is to be used. Cheap enough to be asked for each batch.
    pub fn on(&self, offload: Offload) -> bool {
        self.state(offload) == OffloadState::On
    }

    /// How it stands.
    pub fn state(&self, offload: Offload) -> OffloadState {
        self.entry(offload).get()
    }

    /// Whether a test at the start is still to be done: true for the first who asks.
    pub(crate) fn begin_probe(&self, offload: Offload) -> bool {
        !self.entry(offload).probing.swap(true, Ordering::Relaxed)
    }

    /// What a test at the start found. What is off for another reason stays off.
    pub fn probed(&self, offload: Offload, works: Result<(), String>) {
        let Err(why) = works else {
            log::debug!("{offload}: works");
            return;
        };
        let entry = self.entry(offload);
        if entry.leave(OffloadState::On, OffloadState::Unsupported) {
            log::info!("{offload}: done without: {why}");
            *entry.reason() = Some(why);
        }
    }

    /// It failed: off from now on. Counted each time, logged once.
    pub fn degrade(&self, offload: Offload, why: &str) {
        let entry = self.entry(offload);
        entry.errors.fetch_add(1, Ordering::Relaxed);
        if entry.leave(OffloadState::On, OffloadState::Degraded) {
            log::warn!("{offload}: failed and is off from now on, which costs throughput: {why}");
            *entry.reason() = Some(why.to_owned());
        }
    }

    /// It failed for this once, and stays on. Counted each time, logged the first time.
    pub fn failed_once(&self, offload: Offload, why: &str) {
        let entry = self.entry(offload);
        if entry.errors.fetch_add(1, Ordering::Relaxed) == 0 {
            log::info!("{offload}: not used this time: {why}");
        } else {
            log::debug!("{offload}: not used this time: {why}");
        }
        if entry.get() == OffloadState::On {
            *entry.reason() = Some(why.to_owned());
        }
    }

    /// How often it failed.
    pub fn errors(&self, offload: Offload) -> u64 {
        self.entry(offload).errors.load(Ordering::Relaxed)
    }

    /// How all of them stand.
    pub fn report(&self) -> Vec<OffloadReport> {
        Offload::ALL
            .into_iter()
            .map(|offload| {
                let entry = self.entry(offload);
                OffloadReport {
                    offload,
                    state: entry.get(),
                    reason: entry.reason().clone(),
                    errors: entry.errors.load(Ordering::Relaxed),
                }
            })
            .collect()
    }

    fn entry(&self, offload: Offload) -> &Entry {
        &self.entries[offload as usize]
    }
}

impl Entry {
    fn get(&self) -> OffloadState {
        OffloadState::from_u8(self.state.load(Ordering::Relaxed))
    }

    fn set(&self, state: OffloadState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// From one state to another; false when it was in neither the first nor any longer.
    fn leave(&self, from: OffloadState, to: OffloadState) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.state
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(offloads: &Offloads, offload: Offload) -> (OffloadState, Option<String>, u64) {
        let mut report = offloads.report().into_iter();
        let entry = report.find(|entry| entry.offload == offload).unwrap();
        (entry.state, entry.reason, entry.errors)
    }

    #[test]
    fn names_are_those_of_the_statistics() {
        for (at, offload) in Offload::ALL.into_iter().enumerate() {
            let name = serde_json::to_value(offload).unwrap();
            assert_eq!(name, offload.name());
            assert_eq!(offload as usize, at);
        }
        for state in [
            OffloadState::On,
            OffloadState::Unsupported,
            OffloadState::Disabled,
            OffloadState::Degraded,
        ] {
            assert_eq!(OffloadState::from_u8(state as u8), state);
        }
    }

    #[test]
    fn what_fails_goes_off_alone_and_stays_off() {
        let offloads = Offloads::new(&[]);
        offloads.degrade(Offload::UdpGso, "EIO");
        offloads.degrade(Offload::UdpGso, "EIO again");
        offloads.probed(Offload::UdpGso, Ok(()));
        assert_eq!(
            stands(&offloads, Offload::UdpGso),
            (OffloadState::Degraded, Some("EIO".to_owned()), 2)
        );
        let others = Offload::ALL.iter().filter(|o| **o != Offload::UdpGso);
        assert!(others.clone().all(|offload| offloads.on(*offload)));
    }

    #[test]
    fn one_failure_may_be_forgiven() {
        let offloads = Offloads::new(&[]);
        offloads.failed_once(Offload::UdpGso, "too long for the path");
        assert!(offloads.on(Offload::UdpGso));
        let reason = Some("too long for the path".to_owned());
        assert_eq!(
            stands(&offloads, Offload::UdpGso),
            (OffloadState::On, reason, 1)
        );
    }

    #[test]
    fn the_users_word_stands() {
        let offloads = Offloads::new(&[Offload::UdpGro, Offload::TunUso]);
        offloads.probed(Offload::UdpGro, Ok(()));
        offloads.probed(Offload::TunUso, Err("not in this kernel".to_owned()));
        offloads.probed(Offload::TunTso6, Err("not in this kernel".to_owned()));
        offloads.degrade(Offload::TunTso6, "and now?");
        assert_eq!(offloads.state(Offload::UdpGro), OffloadState::Disabled);
        assert_eq!(offloads.state(Offload::TunUso), OffloadState::Disabled);
        assert_eq!(offloads.state(Offload::TunTso6), OffloadState::Unsupported);
        assert!(offloads.on(Offload::TunTso4));
    }
}
