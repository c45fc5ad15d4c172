//! What all threads of a device share.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use wirespeed_protocol::Tunnel;

use crate::bell::Bell;
use crate::control::End;
use crate::lock::Locked;
use crate::offloads::Offloads;
use crate::outbox::Outbox;
use crate::ports::{Ports, WorkerPorts};
use crate::slow_path::SlowPath;
use crate::spread::Spread;
use crate::statistics::WorkerStatistics;
use crate::sticky::Sticky;
use crate::tun::Tun;

pub(crate) struct Core {
    pub(crate) tunnel: Tunnel,
    pub(crate) tun: Tun,
    pub(crate) offloads: Arc<Offloads>,
    pub(crate) ports: Ports,
    pub(crate) sticky: Sticky,
    pub(crate) spread: Option<Spread>,
    pub(crate) outbox: Outbox,
    pub(crate) slow_path: SlowPath,
    /// One for each thread that waits for descriptors, rung when it has to look at the rest.
    pub(crate) bells: Vec<Bell>,
    up: AtomicBool,
    stopping: AtomicBool,
    end: Mutex<Option<End>>,
    ended: Bell,
}

impl Core {
    pub(crate) fn new(
        tunnel: Tunnel,
        tun: Tun,
        offloads: Arc<Offloads>,
        ports: Ports,
        spread: bool,
        bells: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            tunnel,
            tun,
            offloads,
            ports,
            sticky: Sticky::default(),
            spread: spread.then(Spread::default),
            outbox: Outbox::default(),
            slow_path: SlowPath::new()?,
            bells: (0..bells).map(|_| Bell::new()).collect::<Result<_, _>>()?,
            up: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            end: Mutex::default(),
            ended: Bell::new()?,
        })
    }

    /// Whether the link is up. Nothing leaves and no timer runs while it is down.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    pub(crate) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Release);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Tells all threads to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Has all threads look at what changed.
    pub(crate) fn wake_all(&self) {
        for bell in &self.bells {
            bell.ring();
        }
        self.slow_path.wake();
    }

    /// The device can't go on. The first reason counts.
    pub(crate) fn end_because(&self, end: End) {
        if !self.stopping() {
            self.end.locked().get_or_insert(end);
            self.ended.ring();
        }
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end.locked().clone()
    }

    pub(crate) fn ended(&self) -> &Bell {
        &self.ended
    }

    /// Sends what the protocol has of its own accord.
    pub(crate) fn send_waiting(&self, ports: Option<&WorkerPorts>, statistics: &WorkerStatistics) {
        let ports = ports.filter(|_| self.is_up());
        self.outbox
            .send(&self.tunnel, &self.sticky, ports, statistics);
    }
}
