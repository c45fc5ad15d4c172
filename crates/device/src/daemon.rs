//! The program's life: into the background, up, and down again.
//!
//! ```text
//! a person, wg-quick → wirespeed-device wg0 ── starts ──→ wirespeed-device --foreground --detached wg0, session of its own
//!                      waits for "ready" ←─── pipe ────── take the name → Device → sandbox → sockets answer → ready
//!                      exit 0 or 1                        … until a signal, or the interface or the socket file is gone
//! ```

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;
use serde_json::json;

use crate::bell::Bell;
use crate::control::{Claim, Control, End, Interface, Watch};
use crate::device::Device;
use crate::options::Options;
use crate::{logging, sandbox};

/// What the child says when all is there.
const READY: &[u8] = b"ready\n";

/// The child has this long to become ready.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Runs the program.
pub fn run(options: &Options) -> ExitCode {
    let told = std::env::var_os("WG_PROCESS_FOREGROUND").is_some_and(|value| value == "1");
    let result = if options.foreground || told {
        serve(options)
    } else {
        detach(options)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed) => ExitCode::FAILURE,
    }
}

/// It didn't work, and a person was told why.
struct Failed;

fn failed(why: &dyn Display) -> Failed {
    log::error!("{why}");
    Failed
}

/// Starts ourselves again in the background, and returns when the interface and its socket are there.
fn detach(options: &Options) -> Result<(), Failed> {
    logging::start(&options.interface, options.log_level);
    let mut child =
        start_child().map_err(|error| failed(&format_args!("starting the daemon: {error}")))?;
    match wait_ready(&mut child) {
        Ok(true) => Ok(()),
        // The child has said on standard error why.
        Ok(false) => {
            let _ = child.wait();
            Err(Failed)
        }
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(failed(&format_args!("waiting for the daemon: {error}")))
        }
    }
}

fn start_child() -> io::Result<Child> {
    let program = std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let own = ["--foreground", "--detached"].map(OsString::from);
    Command::new(program)
        .args(own.into_iter().chain(std::env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}

/// True when it became ready, false when it ended before.
fn wait_ready(child: &mut Child) -> io::Result<bool> {
    let Some(mut pipe) = child.stdout.take() else {
        return Ok(false);
    };
    let begun = Instant::now();
    let mut said = Vec::new();
    while said != READY {
        let left = READY_LIMIT.checked_sub(begun.elapsed()).ok_or_else(|| {
            let limit = READY_LIMIT.as_secs();
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it isn't ready after {limit} s"),
            )
        })?;
        if !readable(&[pipe.as_fd()], Some(left))?[0] {
            continue;
        }
        let mut piece = [0; READY.len()];
        match pipe.read(&mut piece)? {
            0 => return Ok(false),
            count => said.extend_from_slice(&piece[..count]),
        }
    }
    Ok(true)
}

/// Is the daemon, to its end.
fn serve(options: &Options) -> Result<(), Failed> {
    let background = options
        .detached
        .then(|| Background::begin(options))
        .transpose();
    logging::start(&options.interface, options.log_level);
    let background =
        background.map_err(|error| failed(&format_args!("leaving the terminal: {error}")))?;
    may_make_interfaces().map_err(|why| failed(&why))?;
    raise_descriptors();
    let claim = Claim::take(&options.interface).map_err(|error| failed(&error))?;
    let watch = claim
        .watch()
        .map_err(|error| failed(&format_args!("watching the socket: {error}")))?;
    let systemd = Systemd::connect();
    let folders: Vec<_> = claim.folders().collect();

    let mut layers = Vec::new();
    let device = Device::start(options, || {
        layers = if options.no_sandbox {
            sandbox::none()
        } else {
            sandbox::enter(&folders)
        };
    })
    .map_err(|error| failed(&error))?;
    let signal = catch_signals().map_err(|error| failed(&error))?;
    let interface: Arc<dyn Interface> = device.clone();
    let control = Control::start(claim, Arc::clone(&interface), move |document| {
        document.insert("sandbox".to_owned(), json!(layers));
        document.insert("log".to_owned(), logging::statistics());
    })
    .map_err(|error| failed(&format_args!("answering on the sockets: {error}")));

    let result = control.and_then(|control| {
        log::info!("ready");
        if let Some(background) = background {
            background
                .ready()
                .map_err(|error| failed(&format_args!("saying that all is ready: {error}")))?;
        }
        systemd.tell("READY=1");
        let result = wait(&*interface, &signal, &watch);
        systemd.tell("STOPPING=1");
        drop(control);
        result
    });
    device.stop();
    result
}

/// A worker needs half a dozen descriptors, and a shell's programs get no more than 1,024 unless they ask. With the sandbox
/// entered the limit can't be changed any more.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        log::debug!(
            "the limit of descriptors stays at {:?}: {error}",
            limit.current
        );
    }
}

/// Waits for one of the reasons to end.
fn wait(interface: &dyn Interface, signal: &Bell, watch: &Watch) -> Result<(), Failed> {
    loop {
        let events = readable(&[signal.as_fd(), watch.as_fd(), interface.ended()], None)
            .map_err(|error| failed(&format_args!("waiting: {error}")))?;
        if events[0] {
            log::info!("told to end");
            return Ok(());
        }
        if events[1] && !watch.still_there() {
            log::info!("somebody removed the socket's file, so this is the end");
            return Ok(());
        }
        match interface.end().filter(|_| events[2]) {
            Some(End::InterfaceGone) => {
                log::info!("the interface was deleted, so this is the end");
                return Ok(());
            }
            Some(End::Failed(why)) => return Err(failed(&why)),
            None => {}
        }
    }
}

/// Which of the descriptors are readable, or at their end.
fn readable(descriptors: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Vec<bool>> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let mut fds: Vec<_> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// What has to be there, in a sentence for who hasn't it.
fn may_make_interfaces() -> Result<(), String> {
    let capable = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN));
    if !capable {
        return Err(
            "making a network interface takes root's privileges (CAP_NET_ADMIN); try it with sudo"
                .to_owned(),
        );
    }
    match File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(
            "/dev/net/tun isn't there: load the kernel's module (modprobe tun), or give this container the device".to_owned(),
        ),
        Err(error) => Err(format!(
            "/dev/net/tun can't be opened: {error}; if this is a container, it has to be given the device"
        )),
    }
}

/// Rings at SIGTERM, SIGINT and SIGHUP.
fn catch_signals() -> Result<Arc<Bell>, String> {
    let bell = Bell::new()
        .map(Arc::new)
        .map_err(|error| format!("a descriptor for signals: {error}"))?;
    let ring = Arc::clone(&bell);
    ctrlc::set_handler(move || ring.ring())
        .map_err(|error| format!("catching signals: {error}"))?;
    Ok(bell)
}

/// A daemon that was started by [`detach`].
struct Background {
    /// Opened early, as no file can be later.
    nowhere: File,
    log: logging::Successor,
}

impl Background {
    /// Leaves the terminal's session and the folder.
    fn begin(options: &Options) -> io::Result<Self> {
        rustix::process::setsid()?;
        rustix::process::chdir("/")?;
        Ok(Self {
            log: logging::Successor::find(options.log_level),
            nowhere: File::options().read(true).write(true).open("/dev/null")?,
        })
    }

    /// Tells who waits for us, and lets go of what is theirs.
    fn ready(self) -> io::Result<()> {
        if self.log.take_over() {
            rustix::stdio::dup2_stderr(&self.nowhere)?;
        }
        io::stdout().write_all(READY)?;
        rustix::stdio::dup2_stdout(&self.nowhere)?;
        Ok(())
    }
}

/// systemd, when it started us and wants to be told how it goes (`Type=notify`).
struct Systemd(Option<UnixDatagram>);

impl Systemd {
    fn connect() -> Self {
        let connect = || {
            let name = std::env::var_os("NOTIFY_SOCKET")?.into_string().ok()?;
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.connect_addr(&address.ok()?).ok()?;
            Some(socket)
        };
        Self(connect())
    }

    fn tell(&self, state: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(state.as_bytes())
        {
            log::warn!("telling systemd {state}: {error}");
        }
    }
}
