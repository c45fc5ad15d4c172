//! A device: the protocol, the TUN, the sockets and the threads between them.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rand::rngs::SysRng;
use rand_core::UnwrapErr;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use wirespeed_protocol::{Now, Peer, Tunnel};

use crate::clock;
use crate::common::Core;
use crate::control::{End, Interface};
use crate::engine::{Engine, Plan, spawn};
use crate::link::{Event, Watch};
use crate::lock::Locked;
use crate::offloads::Offloads;
use crate::options::{EngineKind, Options};
use crate::peer_name;
use crate::ports::Ports;
use crate::slow_path;
use crate::spread::Spread;
use crate::statistics::{self, WorkerStatistics};
use crate::tun::{Tun, TunError};
use crate::udp::{BindOptions, Sockets, UdpError};

/// The MTU of a new interface: 1,500 less the longest outer headers, in a multiple the padding likes.
const MTU: usize = 1_420;

/// Full-size packets in a GSO train, so that a super-packet of local TCP is one train.
const TRAIN_SEGMENTS: u32 = 45;

/// Name and version of the shape of the statistics (`docs/schemas`); `docs/json.md` says what raises the version.
pub const STATISTICS_SCHEMA: (&str, u32) = ("wirespeed.device", 1);

/// Peers with rows of their own in the statistics.
const MAX_PEER_ROWS: usize = 1_000;

/// Sources and the like are only looked through for removed peers from so many on.
const MIN_PRUNED: usize = 64;

/// A device that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// No interface.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// No sockets.
    #[error(transparent)]
    Udp(#[from] UdpError),
    /// Anything else the kernel refused.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A running WireGuard interface.
pub struct Device {
    core: Arc<Core>,
    plan: Plan,
    started: std::time::Instant,
    workers: Vec<Arc<WorkerStatistics>>,
    /// Of what threads of the control sockets do, one at a time.
    control: Mutex<Arc<WorkerStatistics>>,
    pruned: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Device {
    /// Makes the interface, and starts what moves its packets. `confine` is called in between: everything that needs
    /// privileges is open then, and no thread runs yet.
    pub fn start(options: &Options, confine: impl FnOnce()) -> Result<Arc<Self>, DeviceError> {
        let refused = |what| move |source| DeviceError::Refused { what, source };
        let offloads = Arc::new(Offloads::new(&options.no_offload).forcing(&options.force_offload));
        let wished = options.workers.map(|workers| usize::from(workers.get()));
        let plan = Plan::new(options.engine, wished, options.pin);
        let spread = options.spread && plan.sockets() > 1;
        if options.spread && !spread {
            log::warn!(
                "--spread has no effect: there is one thread that sends (it takes the inline engine and --workers 2 or more)"
            );
        }
        let tun = Tun::create(&options.interface, plan.queues(), MTU, &offloads)?;
        let watch = Watch::open(tun.index()).map_err(refused("watching the interface"))?;
        if watch.forwards() {
            log::info!("this machine forwards, so super-packets keep their length");
        } else {
            limit_segments(&tun, Some(TRAIN_SEGMENTS));
        }
        // Tests the offloads while nothing depends on them, and says now if there is no UDP at all.
        drop(Sockets::bind(&BindOptions::default(), &offloads)?);

        let now = clock::now();
        let protocol_options = wirespeed_protocol::Options::default();
        let tunnel = Tunnel::new(now.instant, protocol_options, &mut UnwrapErr(SysRng));
        // Until the interface is up.
        tunnel.stop();
        let ports = Ports::new(&offloads, plan.sockets(), spread);
        let bells = plan.bells() + 1;
        let core = Core::new(tunnel, tun, offloads, ports, spread, bells);
        let core = Arc::new(core.map_err(refused("making an eventfd"))?);
        let engine = Engine::new(plan, &core).map_err(refused("making an epoll"))?;
        let slow_path = Arc::new(WorkerStatistics::new("handshakes", None));
        let link = Arc::new(WorkerStatistics::new("link", None));
        let mut workers = engine.statistics();
        let control = Arc::new(WorkerStatistics::new("control", None));
        workers.extend([&slow_path, &link, &control].map(Arc::clone));

        confine();

        let mut threads = Vec::new();
        let start = || {
            engine.spawn(&core, &mut threads)?;
            let (shared, counters) = (Arc::clone(&core), Arc::clone(&slow_path));
            threads.push(spawn(&core, &slow_path, move || {
                slow_path::run(&shared, &counters);
            })?);
            let (shared, counters) = (Arc::clone(&core), Arc::clone(&link));
            threads.push(spawn(&core, &link, move || {
                watch_link(&shared, watch, &counters);
            })?);
            Ok(())
        };
        let started = start().map_err(refused("starting a thread"));
        let device = Arc::new(Self {
            core,
            plan,
            started: std::time::Instant::now(),
            workers,
            control: Mutex::new(control),
            pruned: AtomicUsize::new(MIN_PRUNED),
            threads: Mutex::new(threads),
        });
        match started {
            Ok(()) => Ok(device),
            Err(error) => {
                device.stop();
                Err(error)
            }
        }
    }

    /// The interface's name.
    pub fn name(&self) -> String {
        self.core.tun.name()
    }

    /// Ends all threads and wipes all keys. The interface goes when the last reference to the device does.
    pub fn stop(&self) {
        self.core.stop();
        for thread in self.threads.locked().drain(..) {
            if thread.join().is_err() {
                log::error!("a thread had panicked");
            }
        }
        self.core.ports.close();
        self.core.tunnel.stop();
        self.core.tunnel.set_private_key(None);
    }

    /// Forgets what is remembered of removed peers, once that has become much.
    fn prune(&self) {
        let core = &self.core;
        let known = core.sticky.len() + core.spread.as_ref().map_or(0, Spread::len);
        if known <= self.pruned.load(Ordering::Relaxed) {
            return;
        }
        let peers: HashSet<_> = core.tunnel.peers().iter().map(|peer| peer.id()).collect();
        core.sticky.retain(|peer| peers.contains(&peer));
        if let Some(spread) = &core.spread {
            spread.retain(|peer| peers.contains(&peer));
        }
        self.pruned
            .store(MIN_PRUNED.max(peers.len() * 4), Ordering::Relaxed);
    }

    fn peer_row(peer: &Peer, core: &Core) -> Value {
        let statistics = peer.statistics();
        let endpoint = peer.endpoint();
        let source = endpoint.and_then(|endpoint| core.sticky.source(peer.id(), endpoint));
        json!({
            "public_key": peer_name::long(peer.public_key()),
            "endpoint": endpoint.map(|endpoint| endpoint.to_string()),
            "source": source.map(|source| source.address.to_string()),
            "received_bytes": statistics.received_bytes,
            "sent_bytes": statistics.sent_bytes,
            "last_handshake": statistics.last_handshake.map(|wall| wall.0.as_secs_f64()),
        })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Interface for Device {
    fn tunnel(&self) -> &Tunnel {
        &self.core.tunnel
    }

    fn now(&self) -> Now {
        clock::now()
    }

    fn listen_port(&self) -> u16 {
        self.core.ports.port()
    }

    fn set_listen_port(&self, port: u16) -> io::Result<()> {
        self.core.ports.set_port(port)?;
        self.core.wake_all();
        self.core.ports.wait_for_release();
        Ok(())
    }

    fn fwmark(&self) -> u32 {
        self.core.ports.fwmark()
    }

    fn set_fwmark(&self, mark: u32) -> io::Result<()> {
        self.core.ports.set_fwmark(mark)
    }

    fn changed(&self) {
        let core = &self.core;
        if core.is_up() && core.outbox.waits(&core.tunnel) {
            let control = self.control.locked();
            core.send_waiting(core.ports.of_worker(0).as_deref(), &control);
        }
        core.slow_path.look_at_timers(&core.tunnel);
        self.prune();
    }

    fn statistics(&self) -> Value {
        let core = &self.core;
        let peers = core.tunnel.peers();
        let rows = peers.iter().take(MAX_PEER_ROWS);
        let rows: Vec<_> = rows.map(|peer| Self::peer_row(peer, core)).collect();
        let workers = self.workers.iter();
        let mut drops = statistics::drops(|reason| core.tunnel.dropped(reason), &self.workers);
        drops["socket-overflow"] = core.ports.overflows().into();
        let (schema, version) = STATISTICS_SCHEMA;
        json!({
            "schema": {"name": schema, "version": version},
            "version": env!("CARGO_PKG_VERSION"),
            "interface": core.tun.name(),
            "mtu": core.tun.mtu(),
            "up": core.is_up(),
            "uptime": self.started.elapsed().as_secs_f64(),
            "engine": match self.plan.kind {
                EngineKind::Inline => "inline",
                EngineKind::Pipeline => "pipeline",
            },
            "worker_count": self.plan.workers,
            "pinned": self.plan.pin,
            "spread": core.spread.is_some(),
            "listen_port": core.ports.port(),
            "offloads": core.offloads.report(),
            "drops": drops,
            "workers": workers.map(|worker| worker.to_json()).collect::<Vec<_>>(),
            "peers_left_out": peers.len() - rows.len(),
            "peers": rows,
        })
    }

    fn ended(&self) -> BorrowedFd<'_> {
        self.core.ended().as_fd()
    }

    fn end(&self) -> Option<End> {
        self.core.end()
    }
}

/// The thread that follows the interface: up, down, MTU, gone.
fn watch_link(core: &Core, mut watch: Watch, statistics: &WorkerStatistics) {
    let Some(bell) = core.bells.last() else {
        return;
    };
    while !core.stopping() {
        let read = watch.events(|event| link_event(core, event, statistics));
        if let Err(error) = read {
            log::error!("the interface can't be watched any more: {error}");
            core.end_because(End::Failed(format!(
                "watching the interface failed: {error}"
            )));
            return;
        }
        let mut either = [
            PollFd::new(&watch, PollFlags::IN),
            PollFd::new(bell, PollFlags::IN),
        ];
        // An interruption only means that we look too early.
        let _ = poll(&mut either, None);
        bell.clear();
    }
}

fn link_event(core: &Core, event: Event, statistics: &WorkerStatistics) {
    match event {
        Event::Up => link_up(core, statistics),
        Event::Down => link_down(core),
        Event::Mtu(mtu) => {
            if mtu != core.tun.mtu() {
                log::info!("the MTU is {mtu} now");
            }
            core.tun.set_mtu_seen(mtu);
        }
        Event::Renamed(name) => log::info!("the interface's name is {name} now"),
        Event::Route(route) => core.sticky.forget_behind(route),
        Event::Forwards => {
            log::info!("this machine forwards from now on, so super-packets keep their length");
            limit_segments(&core.tun, None);
        }
        Event::Gone => core.end_because(End::InterfaceGone),
    }
}

/// How long super-packets are only matters for throughput, so going without is no reason to stop.
fn limit_segments(tun: &Tun, segments: Option<u32>) {
    if let Err(error) = tun.limit_segments(segments) {
        log::info!("the length of super-packets stays as it is: {error}");
    }
}

fn link_up(core: &Core, statistics: &WorkerStatistics) {
    if core.is_up() {
        return;
    }
    match core.ports.open() {
        Ok(()) => log::info!("up, listening on port {}", core.ports.port()),
        // Another port can still be set.
        Err(error) => log::error!("up, but {error}"),
    }
    core.set_up(true);
    core.tunnel.start(clock::now());
    core.wake_all();
    core.send_waiting(core.ports.of_worker(0).as_deref(), statistics);
}

fn link_down(core: &Core) {
    if !core.is_up() {
        return;
    }
    log::info!("down");
    core.set_up(false);
    core.ports.close();
    core.tunnel.stop();
    core.wake_all();
}
