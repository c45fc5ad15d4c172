//! A tunnel over the road: two daemons of one implementation, started for one sample and stopped after it, so that no other's
//! idle threads run beside it.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddrV4;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wirespeed_protocol::{PrivateKey, PublicKey};

use crate::BenchError;
use crate::echo::Echo;
use crate::implementation::Implementation;
use crate::leftovers;
use crate::place::Place;
use crate::road::{Cable, INSIDE, Road};
use crate::uapi::{self, Request};

pub(crate) const PORT: u16 = 51_820;
/// The tunnel's MTU, everybody's default.
const MTU: u32 = 1_420;
/// How long a daemon may take to open its control socket.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long the first echo may take; a lost first handshake costs 5 s.
const TRAFFIC_WITHIN: Duration = Duration::from_secs(15);
/// How long a daemon may take to end by itself.
const ENDS_WITHIN: Duration = Duration::from_millis(1_500);

/// A running daemon; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    name: &'static str,
    interface: String,
    log: PathBuf,
    begun: Instant,
}

impl Daemon {
    /// Starts one in a place; `end` makes its interface's name.
    pub(crate) fn start(
        place: &Place,
        implementation: &Implementation,
        end: char,
    ) -> Result<Self, BenchError> {
        let program = implementation.program.as_ref().ok_or_else(|| {
            BenchError::Measured(format!("{} has no program", implementation.name))
        })?;
        let interface = leftovers::interface(end);
        let log = std::env::temp_dir().join(format!("{interface}.log"));
        let file =
            File::create(&log).map_err(BenchError::system(format!("write {}", log.display())))?;
        let second = file
            .try_clone()
            .map_err(BenchError::system("copy a descriptor"))?;
        let mut line = vec![program.display().to_string()];
        line.extend(
            implementation
                .arguments
                .iter()
                .map(|&argument| argument.to_owned()),
        );
        line.push(interface.clone());
        let begun = Instant::now();
        let child = place.spawn(&line, move |command| {
            // Each its own way to be quiet.
            command
                .env("LOG_LEVEL", "error")
                .env("WG_LOG_LEVEL", "error");
            command
                .stdout(Stdio::from(file))
                .stderr(Stdio::from(second));
        })?;
        Ok(Self {
            child,
            name: implementation.name,
            interface,
            log,
            begun,
        })
    }

    /// Waits until its control socket answers; how long that took from its start.
    pub(crate) fn ready(&mut self) -> Result<Duration, BenchError> {
        let socket = uapi::socket(&self.interface);
        loop {
            if UnixStream::connect(&socket).is_ok() {
                return Ok(self.begun.elapsed());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(&format!("ended at once ({status})")));
            }
            if self.begun.elapsed() > READY_WITHIN {
                return Err(self.failed(&format!(
                    "opened no control socket within {} s",
                    READY_WITHIN.as_secs()
                )));
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Ends it the hard way, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// Asks it to end, and waits; true = it did so by itself.
    fn end(&mut self) -> bool {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // Not reaped yet, so the number is still its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < ENDS_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.kill();
        false
    }

    fn failed(&self, what: &str) -> BenchError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let log = if last.is_empty() {
            String::new()
        } else {
            format!(
                "; its log ends: {}",
                last.trim().chars().take(300).collect::<String>()
            )
        };
        BenchError::Daemon {
            program: self.name.to_owned(),
            what: what.to_owned(),
            log,
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_file(uapi::socket(&self.interface));
        let _ = fs::remove_file(&self.log);
    }
}

/// A key pair.
pub(crate) struct Keys {
    pub(crate) private: PrivateKey,
    pub(crate) public: PublicKey,
}

impl Keys {
    pub(crate) fn random() -> Self {
        let private = PrivateKey::from_bytes(rand::random());
        Self {
            public: private.public(),
            private,
        }
    }
}

/// A tunnel through which an echo has come back.
pub(crate) struct Tunnel<'a> {
    road: &'a Road,
    implementation: &'a Implementation,
    cable: Cable,
    keepalive: u16,
    keys: [Keys; 2],
    pub(crate) ends: [Daemon; 2],
    /// From the start of a daemon to its control socket, mean of both ends.
    pub(crate) ready: Duration,
    /// From the start of both daemons to the first echo through the tunnel, configuration included.
    pub(crate) first_echo: Duration,
}

impl<'a> Tunnel<'a> {
    pub(crate) fn start(
        road: &'a Road,
        implementation: &'a Implementation,
        cable: Cable,
        keepalive: u16,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Self, BenchError> {
        let [near, far] = road.ends();
        let begun = Instant::now();
        let mut ends = [
            Daemon::start(near, implementation, 'a')?,
            Daemon::start(far, implementation, 'b')?,
        ];
        let ready = (ends[0].ready()? + ends[1].ready()?) / 2;
        let mut tunnel = Self {
            road,
            implementation,
            cable,
            keepalive,
            keys: [Keys::random(), Keys::random()],
            ends,
            ready,
            first_echo: Duration::ZERO,
        };
        // The far end first: nobody calls before it listens.
        tunnel.configure(1)?;
        tunnel.configure(0)?;
        let answered = Echo::open(near, INSIDE[1])?.first_answer(
            TRAFFIC_WITHIN,
            Duration::from_millis(2),
            goes_on,
        )?;
        tunnel.first_echo = answered - begun;
        Ok(tunnel)
    }

    /// Starts the far end again, as it was.
    pub(crate) fn restart_far(&mut self) -> Result<(), BenchError> {
        self.ends[1] = Daemon::start(&self.road.far, self.implementation, 'b')?;
        self.ends[1].ready()?;
        self.configure(1)
    }

    /// The far end's public key.
    pub(crate) fn far_key(&self) -> PublicKey {
        self.keys[1].public
    }

    fn configure(&self, end: usize) -> Result<(), BenchError> {
        let other = 1 - end;
        let daemon = &self.ends[end];
        let mut request = Request::set(&*self.keys[end].private.to_bytes(), PORT);
        let endpoint = SocketAddrV4::new(self.cable.addresses()[other], PORT);
        request.peer(
            self.keys[other].public.as_bytes(),
            Some(endpoint),
            self.keepalive,
            INSIDE[other],
        );
        request.send(daemon.name, &daemon.interface)?;
        let interface = &daemon.interface;
        let address = INSIDE[end];
        self.road.ends()[end].ip(&format!(
            "addr add {address}/24 dev {interface}\nlink set {interface} mtu {MTU} up\n"
        ))
    }
}
