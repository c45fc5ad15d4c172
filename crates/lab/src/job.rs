//! Work that goes on while a lab is up: programs of its own that end with it, like everything in its namespaces.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, accept, bind, listen, socket};
use wirespeed_words::say;

use crate::command::Runner;
use crate::topology::End;
use crate::tunnel::spawn_daemon;
use crate::up::EmulatorCommand;
use crate::{Lab, LabError};

/// Where the slow program listens.
const PORT: u16 = 8080;

/// Connections that it takes per second, and those that are wanted.
const TAKEN_PER_SECOND: u32 = 10;
const WANTED_PER_SECOND: u32 = 100;

/// What a job's command line begins with when this program is to do it.
const LISTEN: &str = "listen-slowly";
const CROWD: &str = "crowd";
const SEND_AND_TAKE: &str = "send-and-take";
const TRANSFER: &str = "transfer";

/// Where hosts transfer to each other, and how long each transfer lasts.
const TRANSFER_PORT: u16 = 8081;
const TRANSFER_FOR: Duration = Duration::from_millis(1500);

/// What the two sides of a transfer say to each other first: who sends.
const I_SEND: u8 = b's';
const YOU_SEND: u8 = b'r';

/// One of them.
pub(crate) struct Job {
    /// In words.
    pub(crate) what: String,
    host: &'static str,
    work: Work,
}

enum Work {
    /// A program of the system.
    Program(Vec<String>),
    /// Something that this program does when it is started like the road emulator.
    Own(Vec<String>),
}

/// Those that a lab needs.
pub(crate) fn all(lab: &Lab) -> Vec<Job> {
    let [first, second] = lab.scenario.topology.ends();
    let fault = &lab.scenario.fault;
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    let mut jobs = Vec::new();
    for _ in 0..fault.busy_jobs {
        jobs.push(Job {
            what: say!("lab-job-work"),
            host: second.host,
            work: Work::Program(words("sha256sum /dev/zero")),
        });
    }
    if let Some(queue) = fault.accept_queue {
        let address = second.tunnel_address;
        jobs.push(Job {
            what: say!("lab-job-slow"),
            host: second.host,
            work: Work::Own(words(&format!("{LISTEN} {address} {queue}"))),
        });
        jobs.push(Job {
            what: say!("lab-job-crowd"),
            host: first.host,
            work: Work::Own(words(&format!("{CROWD} {address}"))),
        });
    }
    if fault.transfers {
        let between = |end: &End| end.site.map_or(end.host, |site| site.host);
        let address = second
            .site
            .map_or(second.tunnel_address, |site| site.host_address);
        jobs.push(Job {
            what: say!("lab-job-host"),
            host: between(&second),
            work: Work::Own(words(&format!("{SEND_AND_TAKE} {address}"))),
        });
        jobs.push(Job {
            what: say!("lab-job-transfers"),
            host: between(&first),
            work: Work::Own(words(&format!("{TRANSFER} {address}"))),
        });
    }
    if let Some(after) = fault.vanish_after {
        let seconds = after.duration().as_secs_f64();
        let interface = lab.id.tunnel_interface(1);
        let line = format!("sleep {seconds} && ip link set {interface} down");
        jobs.push(Job {
            what: say!("lab-job-away", after = after.to_string()),
            host: second.host,
            work: Work::Program(vec!["sh".to_owned(), "-c".to_owned(), line]),
        });
    }
    jobs
}

impl Job {
    /// Starts it; it ends with its namespace.
    pub(crate) fn start(&self, runner: &Runner, own: &EmulatorCommand) -> Result<(), LabError> {
        let program = own.program.to_string_lossy();
        let line: Vec<&str> = match &self.work {
            Work::Program(line) => line.iter().map(String::as_str).collect(),
            Work::Own(line) => std::iter::once(&*program)
                .chain(own.arguments.iter().map(String::as_str))
                .chain(line.iter().map(String::as_str))
                .collect(),
        };
        let mut command = runner.in_host(self.host, &line);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        spawn_daemon(command).map_err(|e| LabError::Setting {
            host: self.host.to_owned(),
            why: format!("{} could not be started: {e}", line[0]),
        })?;
        Ok(())
    }
}

/// What the program is to be that a lab started: a job, or the road emulator. Runs until it is ended by a signal.
pub fn serve(arguments: &[String]) -> Result<(), LabError> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let usage = |what: &str| LabError::Job(format!("`{}`: {what}", arguments.join(" ")));
    match words.as_slice() {
        [LISTEN, address, queue] => {
            let address = address.parse().map_err(|_| usage("no address"))?;
            let queue: u16 = queue.parse().map_err(|_| usage("no length of a queue"))?;
            listen_slowly(address, queue)
        }
        [CROWD, address] => crowd(address.parse().map_err(|_| usage("no address"))?),
        [SEND_AND_TAKE, address] => {
            send_and_take(address.parse().map_err(|_| usage("no address"))?)
        }
        [TRANSFER, address] => {
            let address = address.parse().map_err(|_| usage("no address"))?;
            thread::spawn(move || transfer(address, YOU_SEND));
            transfer(address, I_SEND)
        }
        _ => crate::emulator::run(arguments),
    }
}

/// Listens with a queue, and takes what is in it one by one.
fn listen_slowly(address: Ipv4Addr, queue: u16) -> Result<(), LabError> {
    let failed = |e: rustix::io::Errno| LabError::Job(format!("listen at {address}:{PORT}: {e}"));
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).map_err(failed)?;
    bind(&listener, &SocketAddrV4::new(address, PORT)).map_err(failed)?;
    listen(&listener, queue.into()).map_err(failed)?;
    loop {
        thread::sleep(Duration::from_secs(1) / TAKEN_PER_SECOND);
        drop(accept(&listener).map_err(failed)?);
    }
}

/// Connects again and again, each time from a thread of its own, as a crowd does that waits for nobody.
fn crowd(address: Ipv4Addr) -> Result<(), LabError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let to = SocketAddr::from((address, PORT));
    let gap = Duration::from_secs(1) / WANTED_PER_SECOND;
    let mut next = Instant::now();
    loop {
        let one = thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            match TcpStream::connect_timeout(&to, PATIENCE) {
                // Held for a moment, as a request would.
                Ok(connection) => {
                    thread::sleep(PATIENCE / 4);
                    drop(connection);
                }
                Err(e) if e.kind() == ErrorKind::TimedOut => {}
                // Nobody listens yet, or the tunnel is down.
                Err(_) => thread::sleep(PATIENCE / 4),
            }
        });
        one.map_err(|e| LabError::Job(format!("another connection: {e}")))?;
        next += gap;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The far side of transfers: takes what is sent, or sends.
fn send_and_take(address: Ipv4Addr) -> Result<(), LabError> {
    let failed = |e: std::io::Error| LabError::Job(format!("listen at {address}: {e}"));
    let listener = TcpListener::bind((address, TRANSFER_PORT)).map_err(failed)?;
    loop {
        let (mut connection, _) = listener.accept().map_err(failed)?;
        thread::spawn(move || {
            let mut who = [0];
            // Whatever happens to one transfer, the next one comes.
            let _ = connection
                .set_read_timeout(Some(TRANSFER_FOR))
                .and_then(|()| connection.read_exact(&mut who))
                .and_then(|()| keep_on(&mut connection, who[0] == YOU_SEND));
        });
    }
}

/// One transfer after the other, each over a connection of its own.
fn transfer(address: Ipv4Addr, who: u8) -> Result<(), LabError> {
    let to = SocketAddr::from((address, TRANSFER_PORT));
    loop {
        let begun = Instant::now();
        let _ = TcpStream::connect_timeout(&to, TRANSFER_FOR).and_then(|mut connection| {
            connection.write_all(&[who])?;
            keep_on(&mut connection, who == I_SEND)
        });
        thread::sleep(TRANSFER_FOR.saturating_sub(begun.elapsed()));
    }
}

/// Sends or takes until the transfer's time is over or nothing moves any more, at some 20 Mbit/s at most.
fn keep_on(connection: &mut TcpStream, send: bool) -> std::io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(25);
    let begun = Instant::now();
    connection.set_read_timeout(Some(TRANSFER_FOR))?;
    connection.set_write_timeout(Some(TRANSFER_FOR))?;
    let mut buffer = vec![0; 64 * 1024];
    while begun.elapsed() < TRANSFER_FOR {
        if send {
            connection.write_all(&buffer)?;
            thread::sleep(PAUSE);
        } else if connection.read(&mut buffer)? == 0 {
            break;
        }
    }
    Ok(())
}
