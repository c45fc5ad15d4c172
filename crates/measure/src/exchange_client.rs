//! Many short exchanges, each over a connection of its own, so many at once in one thread.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use crate::Percentiles;
use crate::exchange_request::Request;
use crate::exchange_stages::{Exchange, Stage, Times, Went, percentiles};
use crate::poller::{Poller, allow_open_files};

/// Most connections at once, and in all.
pub(crate) const AT_ONCE_AT_MOST: u32 = 20_000;
pub(crate) const WANTED_AT_MOST: u64 = 1_000_000;
/// Longest sample.
pub(crate) const SECONDS_AT_MOST: f64 = 120.0;
/// Files this process has open beside the connections.
const OTHER_FILES: u64 = 128;
/// In place of a reason: the turn of these never came. It tells of a slow road, and of no failure.
pub const NOT_BEGUN: &str = "not begun in time";
/// In place of a reason: these were on their way, no longer than they may be, when the sample's time was over.
pub const CUT_OFF: &str = "under way when the sample's time was over";
/// How often a wait looks up, and how often slow exchanges are looked for.
const LOOK_UP: Duration = Duration::from_millis(20);
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// One sample's client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExchangeRun {
    pub(crate) token: u64,
    pub(crate) to: SocketAddr,
    /// Leave by this interface only.
    pub(crate) device: Option<String>,
    pub(crate) at_once: u32,
    pub(crate) wanted: u64,
    /// Bytes.
    pub(crate) request: u32,
    pub(crate) response: u32,
    /// Seconds for all of it.
    pub(crate) seconds: f64,
    /// Seconds for each.
    pub(crate) each_within: f64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExchangesDone {
    pub(crate) completed: u64,
    pub(crate) failed: BTreeMap<String, u64>,
    /// From the first connection to the last end.
    pub(crate) seconds: f64,
    pub(crate) connect: Option<Percentiles>,
    pub(crate) first_byte: Option<Percentiles>,
    pub(crate) total: Option<Percentiles>,
}

/// Makes the exchanges.
pub(crate) fn run(
    run: &ExchangeRun,
    keep_going: &dyn Fn() -> bool,
) -> Result<ExchangesDone, String> {
    let request = Request {
        token: run.token,
        length: run.request,
        response: run.response,
    };
    let sensible = (1..=AT_ONCE_AT_MOST).contains(&run.at_once)
        && (1..=WANTED_AT_MOST).contains(&run.wanted)
        && run.seconds > 0.0
        && run.seconds <= SECONDS_AT_MOST
        && run.each_within > 0.0
        && run.each_within <= SECONDS_AT_MOST
        && request.is_sensible();
    if !sensible {
        return Err(format!(
            "exchanges are 1 to {AT_ONCE_AT_MOST} at once, 16 bytes to 64 KiB asked and up to 1 MiB answered, up to {SECONDS_AT_MOST} s"
        ));
    }
    allow_open_files(u64::from(run.at_once) + OTHER_FILES)?;
    let mut client = Client {
        run,
        request: request.bytes(),
        poller: Poller::new().map_err(|error| format!("epoll: {error}"))?,
        slots: Vec::new(),
        free: Vec::new(),
        open: 0,
        times: Times::new()?,
        failed: BTreeMap::new(),
    };
    client.run(keep_going)
}

struct Client<'a> {
    run: &'a ExchangeRun,
    request: Vec<u8>,
    poller: Poller,
    /// A slot is used again; its generation tells late events of the connection before.
    slots: Vec<Slot>,
    free: Vec<usize>,
    open: u32,
    times: Times,
    failed: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    exchange: Option<Exchange>,
}

impl Client<'_> {
    fn run(&mut self, keep_going: &dyn Fn() -> bool) -> Result<ExchangesDone, String> {
        let begun = Instant::now();
        let until = begun + Duration::from_secs_f64(self.run.seconds);
        let mut started = 0;
        let mut swept = begun;
        let mut last_end = begun;
        while started < self.run.wanted || self.open > 0 {
            if !keep_going() {
                return Err("it was stopped".to_owned());
            }
            if Instant::now() >= until {
                break;
            }
            while started < self.run.wanted && self.open < self.run.at_once {
                started += 1;
                if let Err(error) = self.start() {
                    self.fail("connect", &error);
                }
            }
            let ready = self
                .poller
                .wait(LOOK_UP)
                .map_err(|error| format!("epoll: {error}"))?;
            for one in ready {
                if self.go_on(one) {
                    last_end = Instant::now();
                }
            }
            if swept.elapsed() >= SWEEP_EVERY {
                swept = Instant::now();
                if self.give_up() {
                    last_end = swept;
                }
            }
        }
        let gave_up = self.give_up();
        if self.cut_off() || gave_up {
            last_end = Instant::now();
        }
        let never = self.run.wanted - started;
        if never > 0 {
            self.count(NOT_BEGUN.to_owned(), never);
        }
        Ok(ExchangesDone {
            completed: self.times.total.len(),
            failed: std::mem::take(&mut self.failed),
            seconds: (last_end - begun).as_secs_f64(),
            connect: percentiles(&self.times.connect),
            first_byte: percentiles(&self.times.first_byte),
            total: percentiles(&self.times.total),
        })
    }

    fn start(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        let socket = Socket::new(Domain::for_address(self.run.to), Type::STREAM, None)?;
        if let Some(device) = &self.run.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&self.run.to.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(nix::Error::EINPROGRESS as i32) => {}
            Err(error) => return Err(error),
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[at];
        let stream = TcpStream::from(socket);
        if let Err(error) = self.poller.add_writer(&stream, name(at, slot.generation)) {
            self.free.push(at);
            return Err(error);
        }
        slot.exchange = Some(Exchange {
            stream,
            begun,
            stage: Stage::Connecting,
        });
        self.open += 1;
        Ok(())
    }

    /// `true` = an exchange completed or failed.
    fn go_on(&mut self, ready: u64) -> bool {
        let (at, generation) = ((ready & 0xffff_ffff) as usize, (ready >> 32) as u32);
        let Some(slot) = self.slots.get_mut(at) else {
            return false;
        };
        let Some(exchange) = slot
            .exchange
            .as_mut()
            .filter(|_| slot.generation == generation)
        else {
            return false;
        };
        let asking_before = exchange.stage.asks();
        match exchange.go_on(&self.request, self.run.response as usize, &mut self.times) {
            Ok(Went::On { ended }) => {
                if asking_before && !exchange.stage.asks() {
                    let changed = self.poller.change(&exchange.stream, ready, false);
                    if let Err(error) = changed {
                        self.close(at);
                        self.fail("answer", &error);
                        return true;
                    }
                }
                ended
            }
            Ok(Went::Closed) => {
                self.close(at);
                false
            }
            Err((stage, error)) => {
                self.close(at);
                self.fail(stage, &error);
                true
            }
        }
    }

    /// Gives up what takes longer than it may; `true` = there was some.
    fn give_up(&mut self) -> bool {
        let within = Duration::from_secs_f64(self.run.each_within);
        let mut gave_up = false;
        for stage in self.end_those(|exchange| exchange.begun.elapsed() >= within) {
            gave_up = true;
            self.fail(stage, &ErrorKind::TimedOut.into());
        }
        gave_up
    }

    /// Ends what is still on its way; `true` = there was some.
    fn cut_off(&mut self) -> bool {
        let stages = self.end_those(|_| true);
        if !stages.is_empty() {
            self.count(CUT_OFF.to_owned(), stages.len() as u64);
        }
        !stages.is_empty()
    }

    /// Ends these, and tells the stages of those that had not got all of their answer.
    fn end_those(&mut self, which: impl Fn(&Exchange) -> bool) -> Vec<&'static str> {
        let mut stages = Vec::new();
        for at in 0..self.slots.len() {
            let Some(exchange) = self.slots[at].exchange.as_ref().filter(|one| which(one)) else {
                continue;
            };
            stages.extend(exchange.stage.name());
            self.close(at);
        }
        stages
    }

    fn close(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.exchange = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(at);
        self.open -= 1;
    }

    fn fail(&mut self, stage: &str, error: &io::Error) {
        self.count(format!("{stage}: {}", reason(error)), 1);
    }

    fn count(&mut self, reason: String, times: u64) {
        *self.failed.entry(reason).or_default() += times;
    }
}

fn name(slot: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | slot as u64
}

/// In few words, the same for the same reason.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error().map(nix::errno::Errno::from_raw) {
        Some(nix::Error::EADDRNOTAVAIL) => "no free local port".to_owned(),
        Some(nix::Error::EMFILE | nix::Error::ENFILE) => "no more open files".to_owned(),
        Some(known) => known.desc().to_lowercase(),
        None => match error.kind() {
            ErrorKind::TimedOut => "timed out".to_owned(),
            ErrorKind::UnexpectedEof => "closed early".to_owned(),
            ErrorKind::InvalidData => "more than was asked for".to_owned(),
            _ => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv4Addr, TcpListener};

    use super::*;
    use crate::background::Background;
    use crate::exchange_server::{ExchangeServe, start};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn wished(to: SocketAddr) -> ExchangeRun {
        ExchangeRun {
            token: 5,
            to,
            device: None,
            at_once: 50,
            wanted: 300,
            request: 300,
            response: 40_000,
            seconds: 10.0,
            each_within: 5.0,
        }
    }

    fn server(servers: &Background<()>, token: u64) -> SocketAddr {
        let wanted = ExchangeServe {
            token,
            to: HERE,
            own: true,
            device: None,
            at_once: 50,
            seconds: 20.0,
        };
        SocketAddr::new(HERE, start(servers, &wanted).unwrap())
    }

    #[test]
    fn exchanges_are_made_and_timed() {
        let servers = Background::default();
        let to = server(&servers, 5);
        let mut stranger = TcpStream::connect(to).unwrap();
        stranger.write_all(&[0xa5; 64]).unwrap();
        let done = run(&wished(to), &|| true).unwrap();
        assert_eq!((done.completed, done.failed.len()), (300, 0), "{done:?}");
        let (connect, total) = (done.connect.unwrap(), done.total.unwrap());
        assert!(
            connect.p50 <= connect.p99 && connect.p99 <= total.max,
            "{done:?}"
        );
        assert!(total.p50 > 0.0 && done.seconds < 10.0, "{done:?}");
        // Nobody asked for an answer in our words: the end, or a reset.
        let mut left = Vec::new();
        let _ = stranger.read_to_end(&mut left);
        assert!(left.is_empty());
        servers.finish(5).unwrap();
    }

    #[test]
    fn failures_have_their_reasons() {
        // Somebody else's server hangs up on us.
        let servers = Background::default();
        let to = server(&servers, 6);
        let few = ExchangeRun {
            wanted: 20,
            ..wished(to)
        };
        let done = run(&few, &|| true).unwrap();
        assert_eq!(done.completed, 0);
        assert_eq!(done.failed.values().sum::<u64>(), 20, "{done:?}");
        assert!(
            done.failed
                .keys()
                .all(|reason| reason.starts_with("answer: ")),
            "{done:?}"
        );
        assert!(done.connect.is_none());
        servers.finish(6).unwrap();
        // Nobody there.
        let done = run(&few, &|| true).unwrap();
        assert_eq!(
            done.failed.get("connect: connection refused"),
            Some(&20),
            "{done:?}"
        );
        // Somebody who never answers, and time that is over before all have begun.
        let silent = TcpListener::bind((HERE, 0)).unwrap();
        let hopeless = ExchangeRun {
            at_once: 4,
            wanted: 20,
            seconds: 0.6,
            each_within: 0.4,
            ..wished(silent.local_addr().unwrap())
        };
        let begun = Instant::now();
        let done = run(&hopeless, &|| true).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(3));
        assert!(done.failed["answer: timed out"] >= 4, "{done:?}");
        assert!(done.failed[NOT_BEGUN] > 0, "{done:?}");
        assert_eq!(done.failed.values().sum::<u64>(), 20);
    }

    #[test]
    fn what_is_under_way_at_the_end_has_not_failed() {
        let silent = TcpListener::bind((HERE, 0)).unwrap();
        let cut_off = ExchangeRun {
            at_once: 4,
            wanted: 4,
            seconds: 0.3,
            each_within: 5.0,
            ..wished(silent.local_addr().unwrap())
        };
        let done = run(&cut_off, &|| true).unwrap();
        assert_eq!(done.failed, [(CUT_OFF.to_owned(), 4)].into());
        assert_eq!(done.completed, 0);
    }

    #[test]
    fn a_stop_and_nonsense_are_refused() {
        let to = SocketAddr::new(HERE, 9);
        assert!(run(&wished(to), &|| false).is_err());
        for (at_once, wanted, request, response, seconds) in [
            (0, 1, 100, 100, 1.0),
            (1, 0, 100, 100, 1.0),
            (1, 1, 15, 100, 1.0),
            (1, 1, 100, 0, 1.0),
            (1, 1, 100, 2 << 20, 1.0),
            (1, 1, 100, 100, f64::NAN),
            (u32::MAX, 1, 100, 100, 1.0),
        ] {
            let wrong = ExchangeRun {
                at_once,
                wanted,
                request,
                response,
                seconds,
                ..wished(to)
            };
            assert!(run(&wrong, &|| true).is_err(), "{wrong:?}");
        }
    }
}
