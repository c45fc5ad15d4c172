//! The two ends of one tunnel, and which address is reached which way.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirespeed_facts::{Counters, Facts, Scope};
use wirespeed_reach::{Machine, Pending};
use wirespeed_words::say;

use crate::addresses::{self, Wanted};
use crate::operations::{COUNTERS, SNAPSHOT, STOP};
use crate::outside::{self, Outside};
use crate::{MeasureError, Stop, Via, sensible};

/// How long a snapshot of a machine may take.
pub(crate) const SNAPSHOT_WITHIN: Duration = Duration::from_secs(20);
/// How long counters may take, over a path that is full.
const COUNTERS_WITHIN: Duration = Duration::from_secs(15);
/// How long the machines may take to end what runs.
const STOP_WITHIN: Duration = Duration::from_millis(800);
/// How often a wait looks up.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What is at the other end.
#[derive(Debug, Clone)]
pub enum FarEnd {
    /// wirespeed itself.
    Wirespeed(Machine),
    /// An iperf3 server.
    Iperf3 {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Nothing.
    Nothing,
}

/// What the user knows better.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Public key of the peer.
    pub peer: Option<String>,
    /// The far end's address outside the tunnel.
    pub bare_address: Option<IpAddr>,
    /// The far end's address inside the tunnel.
    pub tunnel_address: Option<IpAddr>,
    /// Where nothing tells which of several peers is meant, take the one that carried most: for a watch, which is
    /// about the interface as a whole.
    pub busiest: bool,
}

/// The two ends of one tunnel.
#[derive(Debug, Clone)]
pub struct Ends {
    /// The machine wirespeed was started on.
    pub here: Machine,
    /// The other.
    pub far: FarEnd,
    /// The tunnel's interface here.
    pub interface: String,
    /// The tunnel's interface at the far end, where wirespeed runs there.
    pub far_interface: Option<String>,
    /// Public key of the peer at the far end.
    pub peer: String,
    /// The far end's address outside the tunnel.
    pub bare_address: Option<IpAddr>,
    /// The far end's address inside the tunnel.
    pub tunnel_address: Option<IpAddr>,
    /// Our address outside the tunnel as the far end can reach it; `None` behind address translation.
    pub here_bare_address: Option<IpAddr>,
    /// Interface that our sockets must be bound to so that what they send outside stays there; `None` = it does anyhow.
    pub here_bare_device: Option<String>,
    /// The same at the far end.
    pub far_bare_device: Option<String>,
    /// Why nothing we send can stay outside the tunnel, where that is so.
    pub never_outside: Option<String>,
    /// Our address inside the tunnel.
    pub here_tunnel_address: Option<IpAddr>,
    /// Our address and port as the far end's WireGuard sees them, when the address is none of ours: there is
    /// address translation in between.
    pub translated_to: Option<String>,
    /// What this machine said of itself when the ends were found out.
    pub here_facts: Facts,
    /// What the far one said, where wirespeed runs there.
    pub far_facts: Option<Facts>,
    /// Ends everything that is under way.
    pub stop: Stop,
}

impl Ends {
    /// Finds out which peer is the far end and which address is reached which way.
    ///
    /// `interface` may be `None` when there is only one WireGuard interface. Addresses that can't be had are
    /// `None`: a load that needs one says so then.
    ///
    /// # Errors
    /// When the interface, its peers or the right far end are not there, or a machine does not answer.
    pub fn discover(
        here: Machine,
        far: FarEnd,
        interface: Option<&str>,
        overrides: &Overrides,
    ) -> Result<Self, MeasureError> {
        Self::discover_stoppable(here, far, interface, overrides, Stop::default())
    }

    /// As [`Ends::discover`], with a [`Stop`] that exists already.
    ///
    /// # Errors
    /// As [`Ends::discover`].
    pub fn discover_stoppable(
        here: Machine,
        far: FarEnd,
        interface: Option<&str>,
        overrides: &Overrides,
        stop: Stop,
    ) -> Result<Self, MeasureError> {
        let scope = Scope {
            interface: None,
            peer: overrides.peer.clone(),
        };
        let far_pending = match &far {
            FarEnd::Wirespeed(machine) => Some(machine.start(SNAPSHOT, &scope)?),
            FarEnd::Iperf3 { .. } | FarEnd::Nothing => None,
        };
        let here_facts: Facts = here.call(SNAPSHOT, &scope, SNAPSHOT_WITHIN)?;
        let here_facts = sensible::facts(here.name(), here_facts)?;
        let far_facts = match (far_pending, far.machine()) {
            (Some(pending), Some(machine)) => {
                let facts: Facts = pending.wait(SNAPSHOT_WITHIN)?;
                Some(sensible::facts(machine.name(), facts)?)
            }
            _ => None,
        };
        if stop.stopped() {
            return Err(MeasureError::Stopped);
        }
        let iperf3_address = match &far {
            FarEnd::Iperf3 { host, port } => Some(resolve(&here, host, *port)?),
            FarEnd::Wirespeed(_) | FarEnd::Nothing => None,
        };
        let found = addresses::find(&Wanted {
            here_name: here.name(),
            here: &here_facts,
            far: far_facts.as_ref().zip(far.machine().map(Machine::name)),
            iperf3_address,
            interface,
            overrides,
        })?;
        let mut ends = Self {
            here,
            far,
            interface: found.interface,
            far_interface: found.far_interface,
            peer: found.peer,
            bare_address: found.bare_address,
            tunnel_address: found.tunnel_address,
            here_bare_address: found.here_bare_address,
            here_bare_device: None,
            far_bare_device: None,
            never_outside: None,
            here_tunnel_address: found.here_tunnel_address,
            translated_to: found.translated_to,
            here_facts,
            far_facts,
            stop,
        };
        ends.stay_outside()?;
        Ok(ends)
    }

    /// Sees to it that what is sent outside does not go through the tunnel itself.
    fn stay_outside(&mut self) -> Result<(), MeasureError> {
        let mut ways = Vec::new();
        if let Some(to) = self.bare_address {
            let way = outside::find(&self.here, &self.here_facts, &self.interface, to)?;
            ways.push((self.here.name().to_owned(), to, way, true));
        }
        if let (Some(far), Some(facts), Some(interface), Some(to)) = (
            self.far.machine(),
            &self.far_facts,
            &self.far_interface,
            self.here_bare_address,
        ) {
            let way = outside::find(far, facts, interface, to)?;
            ways.push((far.name().to_owned(), to, way, false));
        }
        for (machine, to, way, from_here) in ways {
            match way {
                Outside::Anyhow => {}
                Outside::By(device) if from_here => self.here_bare_device = Some(device),
                Outside::By(device) => self.far_bare_device = Some(device),
                Outside::Never => {
                    self.never_outside = Some(say!(
                        "measure-never-outside",
                        machine = machine,
                        to = to.to_string()
                    ));
                }
            }
        }
        if self.never_outside.is_some() {
            self.bare_address = None;
            self.here_bare_address = None;
        }
        Ok(())
    }

    /// The same two ends, seen from the other: its upload is our download. `None` where wirespeed does not run there, or
    /// an address of ours is not known.
    pub(crate) fn mirrored(&self) -> Option<Self> {
        Some(Self {
            here: self.far.machine()?.clone(),
            far: FarEnd::Wirespeed(self.here.clone()),
            interface: self.far_interface.clone()?,
            far_interface: Some(self.interface.clone()),
            peer: self.peer.clone(),
            bare_address: self.here_bare_address,
            tunnel_address: self.here_tunnel_address,
            here_bare_address: self.bare_address,
            here_bare_device: self.far_bare_device.clone(),
            far_bare_device: self.here_bare_device.clone(),
            never_outside: self.never_outside.clone(),
            here_tunnel_address: self.tunnel_address,
            translated_to: None,
            here_facts: self.far_facts.clone()?,
            far_facts: Some(self.here_facts.clone()),
            stop: self.stop.clone(),
        })
    }

    /// The far machine, when wirespeed runs there.
    pub fn far_machine(&self) -> Option<&Machine> {
        self.far.machine()
    }

    /// Name of the far end for people: the machine's, the iperf3 server's, or the peer's endpoint.
    pub fn far_name(&self) -> String {
        match &self.far {
            FarEnd::Wirespeed(machine) => machine.name().to_owned(),
            FarEnd::Iperf3 { host, port } => format!("iperf3://{host}:{port}"),
            FarEnd::Nothing => self
                .bare_address
                .map_or_else(|| say!("measure-far-end"), |address| address.to_string()),
        }
    }

    /// The far end's address one way or the other.
    ///
    /// # Errors
    /// [`MeasureError::NoAddress`].
    pub fn address(&self, via: Via) -> Result<IpAddr, MeasureError> {
        let (address, what, because) = match via {
            Via::Bare => (
                self.bare_address,
                say!("measure-what-address-outside"),
                self.never_outside
                    .clone()
                    .unwrap_or_else(|| say!("measure-no-endpoint")),
            ),
            Via::Tunnel => (
                self.tunnel_address,
                say!("measure-what-address-inside"),
                say!("measure-no-single-address"),
            ),
        };
        address.ok_or_else(|| MeasureError::NoAddress {
            what,
            machine: self.here.name().to_owned(),
            interface: self.interface.clone(),
            because,
        })
    }

    /// Interface our sockets must be bound to on this way.
    pub(crate) fn here_device(&self, via: Via) -> Option<String> {
        self.here_bare_device.clone().filter(|_| via == Via::Bare)
    }

    /// The same for the far end's sockets.
    pub(crate) fn far_device(&self, via: Via) -> Option<String> {
        self.far_bare_device.clone().filter(|_| via == Via::Bare)
    }

    /// Facts of both ends now (the far end's where wirespeed runs there).
    ///
    /// # Errors
    /// When a machine does not answer, or [`Ends::stop`] was set.
    pub fn snapshot(&self) -> Result<(Facts, Option<Facts>), MeasureError> {
        self.both(SNAPSHOT, SNAPSHOT_WITHIN, sensible::facts)
    }

    /// Counters of both ends now, read at the same time.
    ///
    /// # Errors
    /// When a machine does not answer, or [`Ends::stop`] was set.
    pub fn counters(&self) -> Result<(Counters, Option<Counters>), MeasureError> {
        self.both(COUNTERS, COUNTERS_WITHIN, sensible::counters)
    }

    /// Are both ends' tunnel interfaces among the links that were counted? A list without any link could not be read.
    pub(crate) fn still_there(
        &self,
        (here, far): &(Counters, Option<Counters>),
    ) -> Result<(), MeasureError> {
        let gone = |counters: &Counters, interface: &str| {
            !counters.links.is_empty() && !counters.links.contains_key(interface)
        };
        let at = |machine: &Machine, interface: &str| MeasureError::InterfaceGone {
            machine: machine.name().to_owned(),
            interface: interface.to_owned(),
        };
        if gone(here, &self.interface) {
            return Err(at(&self.here, &self.interface));
        }
        match (far, self.far_machine(), &self.far_interface) {
            (Some(far), Some(machine), Some(interface)) if gone(far, interface) => {
                Err(at(machine, interface))
            }
            _ => Ok(()),
        }
    }

    /// What failed through a tunnel that is not there any more failed for that reason.
    pub(crate) fn or_gone(&self, error: MeasureError) -> MeasureError {
        match error {
            MeasureError::ProbeFailed { .. }
            | MeasureError::LoadFailed { .. }
            | MeasureError::NoConnection { .. } => self
                .counters()
                .and_then(|now| self.still_there(&now))
                .err()
                .filter(|why| matches!(why, MeasureError::InterfaceGone { .. }))
                .unwrap_or(error),
            other => other,
        }
    }

    /// What is looked at here: the tunnel, and the far end's key as the peer in question.
    pub(crate) fn here_scope(&self) -> Scope {
        let far = self.far_facts.as_ref().zip(self.far_interface.as_ref());
        let theirs = far.and_then(|(facts, interface)| key_of(facts, interface));
        Scope {
            interface: Some(self.interface.clone()),
            peer: theirs.or_else(|| Some(self.peer.clone())),
        }
    }

    /// The same at the far end, where its tunnel is known.
    pub(crate) fn far_scope(&self) -> Option<Scope> {
        Some(Scope {
            interface: Some(self.far_interface.clone()?),
            peer: key_of(&self.here_facts, &self.interface),
        })
    }

    /// Asks both ends the same about their tunnel interface, at the same time.
    fn both<R: DeserializeOwned + Send + 'static>(
        &self,
        operation: &str,
        limit: Duration,
        checked: impl Fn(&str, R) -> Result<R, MeasureError>,
    ) -> Result<(R, Option<R>), MeasureError> {
        self.check_stop()?;
        let far = match (&self.far, self.far_scope()) {
            (FarEnd::Wirespeed(machine), Some(scope)) => Some(machine.start(operation, &scope)?),
            _ => None,
        };
        let here = self.here.start(operation, &self.here_scope())?;
        let here = checked(self.here.name(), self.wait(here, limit)?)?;
        let far = far
            .map(|pending| checked(&self.far_name(), self.wait(pending, limit)?))
            .transpose()?;
        Ok((here, far))
    }

    /// Ends early when [`Ends::stop`] was set.
    pub(crate) fn check_stop(&self) -> Result<(), MeasureError> {
        if self.stop.stopped() {
            Err(MeasureError::Stopped)
        } else {
            Ok(())
        }
    }

    /// Calls an operation that takes its time. When [`Ends::stop`] is set meanwhile, the machines are told to end
    /// what they do, and the answer is [`MeasureError::Stopped`].
    pub(crate) fn call<P: Serialize, R: DeserializeOwned + Send + 'static>(
        &self,
        machine: &Machine,
        operation: &str,
        params: &P,
        limit: Duration,
    ) -> Result<R, MeasureError> {
        self.check_stop()?;
        self.wait(machine.start(operation, params)?, limit)
    }

    /// Waits for the answers of two calls that belong together. When one fails, the other is cancelled and not waited
    /// for. Whatever else the machines do goes on.
    pub(crate) fn wait_for_both<A, B>(
        &self,
        first: Pending,
        second: Pending,
        limit: Duration,
    ) -> Result<(A, B), MeasureError>
    where
        A: DeserializeOwned + Send + 'static,
        B: DeserializeOwned + Send + 'static,
    {
        let failed = AtomicBool::new(false);
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| self.wait_unless::<B>(second, limit, &failed));
            let first = self.wait_unless::<A>(first, limit, &failed);
            (first, second.join().unwrap_or(Err(MeasureError::Stopped)))
        });
        match (first, second) {
            (Ok(first), Ok(second)) => Ok((first, second)),
            // The one that was given up says nothing of the reason.
            (Ok(_) | Err(MeasureError::Stopped), Err(why)) | (Err(why), _) => Err(why),
        }
    }

    /// Waits for an answer and looks out for a stop. A machine that does not even end what it does within
    /// [`STOP_WITHIN`] is not waited for.
    pub(crate) fn wait<R: DeserializeOwned + Send + 'static>(
        &self,
        pending: Pending,
        limit: Duration,
    ) -> Result<R, MeasureError> {
        self.wait_unless(pending, limit, &AtomicBool::new(false))
    }

    /// As [`Ends::wait`], until somebody else has `failed`; says so itself.
    fn wait_unless<R: DeserializeOwned + Send + 'static>(
        &self,
        pending: Pending,
        limit: Duration,
        failed: &AtomicBool,
    ) -> Result<R, MeasureError> {
        let cancel = pending.canceller();
        let (answer, answered) = sync_channel(1);
        // Not a scoped thread: after a stop it may have to be left to its limit.
        std::thread::spawn(move || {
            let _ = answer.send(pending.wait::<R>(limit));
        });
        let mut stopped_at: Option<Instant> = None;
        loop {
            match answered.recv_timeout(LOOK_UP) {
                Ok(_) if self.stop.stopped() => return Err(MeasureError::Stopped),
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => {
                    failed.store(true, Ordering::SeqCst);
                    return Err(error.into());
                }
                Err(RecvTimeoutError::Timeout) if failed.load(Ordering::SeqCst) => {
                    cancel();
                    return Err(MeasureError::Stopped);
                }
                Err(RecvTimeoutError::Timeout) if self.stop.stopped() => {
                    if stopped_at.get_or_insert_with(Instant::now).elapsed() > STOP_WITHIN {
                        return Err(MeasureError::Stopped);
                    }
                    // Again and again: what was sent just before may begin just after.
                    self.stop_machines();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(MeasureError::Stopped),
            }
        }
    }

    /// Tells the machines to end what they do; does not wait for it.
    fn stop_machines(&self) {
        for machine in std::iter::once(&self.here).chain(self.far_machine()) {
            // A machine that is gone has nothing left to stop. Dropping the call would cancel it.
            if let Ok(pending) = machine.start(STOP, &()) {
                std::thread::spawn(move || pending.wait::<()>(STOP_WITHIN));
            }
        }
    }
}

impl FarEnd {
    fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Wirespeed(machine) => Some(machine),
            Self::Iperf3 { .. } | Self::Nothing => None,
        }
    }
}

/// The public key of a tunnel itself.
fn key_of(facts: &Facts, interface: &str) -> Option<String> {
    let mut tunnels = facts.tunnels.iter();
    tunnels
        .find(|tunnel| tunnel.name == interface)?
        .public_key
        .clone()
}

fn resolve(here: &Machine, host: &str, port: u16) -> Result<IpAddr, MeasureError> {
    let no_connection = |because: String| MeasureError::NoConnection {
        machine: here.name().to_owned(),
        server: format!("{host} port {port}"),
        because,
    };
    (host, port)
        .to_socket_addrs()
        .map_err(|error| no_connection(error.to_string()))?
        .next()
        .map(|address| address.ip())
        .ok_or_else(|| no_connection(say!("measure-name-without-address")))
}
