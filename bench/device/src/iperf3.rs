//! One load: an iperf3 server at the far end, a client at the near end, and what arrived where.
//!
//! Rates are taken from the receiving side's intervals after the warm-up: iperf3 3.12 tells whole-second ones only otherwise.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::BenchError;
use crate::place::Place;

const PORT: u16 = 5201;
/// The smallest iperf3 knows.
const INTERVAL: &str = "0.1";
/// How long a server may take to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(3);
/// What a client may need beyond the load: to connect and to exchange results over a full path.
const GRACE: Duration = Duration::from_secs(6);
/// What a server may need beyond the client.
const SERVER_GRACE: Duration = Duration::from_secs(2);
const LOOK_UP: Duration = Duration::from_millis(5);

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
    Both,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) to: Ipv4Addr,
    pub(crate) streams: u32,
    pub(crate) direction: Direction,
    /// UDP with so many bytes of payload; `None` = TCP.
    pub(crate) udp_payload: Option<u32>,
    /// Datagrams a second (UDP); `None` = as fast as it goes.
    pub(crate) udp_rate: Option<f64>,
    pub(crate) congestion_control: Option<String>,
    pub(crate) seconds: u32,
    pub(crate) warm_up: f64,
}

/// What went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    /// Goodput after the warm-up, bit/s, as the receiver counted it.
    pub(crate) rate: f64,
    /// Payload bytes received in all, warm-up included.
    pub(crate) bytes: f64,
    /// Segments sent again after the warm-up.
    pub(crate) retransmits: Option<f64>,
    /// Datagrams received per second after the warm-up.
    pub(crate) datagrams: Option<f64>,
    /// Share of datagrams lost after the warm-up.
    pub(crate) lost: Option<f64>,
    /// Datagrams sent per second after the warm-up.
    pub(crate) offered: Option<f64>,
}

/// What a load moved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moved {
    pub(crate) up: Option<Flow>,
    pub(crate) down: Option<Flow>,
}

impl Moved {
    pub(crate) fn bytes(&self) -> f64 {
        [self.up, self.down]
            .iter()
            .flatten()
            .map(|flow| flow.bytes)
            .sum()
    }

    pub(crate) fn rate(&self) -> f64 {
        [self.up, self.down]
            .iter()
            .flatten()
            .map(|flow| flow.rate)
            .sum()
    }

    pub(crate) fn retransmits(&self) -> Option<f64> {
        [self.up, self.down]
            .iter()
            .flatten()
            .filter_map(|flow| flow.retransmits)
            .reduce(|a, b| a + b)
    }
}

/// Runs a load to its end.
pub(crate) fn run(
    near: &Place,
    far: &Place,
    load: &Load,
    goes_on: &dyn Fn() -> bool,
) -> Result<Moved, BenchError> {
    let server = Running::start(far, &server_line(load))?;
    let begun = Instant::now();
    while free(far, load.to)? {
        if begun.elapsed() > LISTENS_WITHIN {
            return Err(BenchError::Load(format!(
                "the server does not listen: {}",
                server.end()?
            )));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let client = Running::start(near, &client_line(load))?;
    let limit = Duration::from_secs(u64::from(load.seconds)) + GRACE;
    let client = client.wait(limit, goes_on);
    let server = server.wait(SERVER_GRACE, goes_on);
    let client = report(&client?)?;
    let server = report(&server?)?;
    let moved = moved(load, &client, &server);
    if moved.bytes() > 0.0 {
        Ok(moved)
    } else {
        Err(BenchError::Load("nothing arrived".to_owned()))
    }
}

fn server_line(load: &Load) -> Vec<String> {
    words(&[
        "iperf3",
        "-s",
        "-1",
        "-J",
        "-i",
        INTERVAL,
        "-p",
        &PORT.to_string(),
        "-B",
        &load.to.to_string(),
    ])
}

fn client_line(load: &Load) -> Vec<String> {
    let mut line = words(&[
        "iperf3",
        "-J",
        "-i",
        INTERVAL,
        "--connect-timeout",
        "3000",
        "-p",
        &PORT.to_string(),
    ]);
    let mut give = |option: &str, value: String| line.extend([option.to_owned(), value]);
    give("-c", load.to.to_string());
    give("-t", load.seconds.to_string());
    give("-P", load.streams.to_string());
    match (load.udp_payload, &load.congestion_control) {
        (Some(payload), _) => {
            give("-l", payload.to_string());
            // 0 is as fast as it goes; each datagram is one send, so the sender makes no trains of them.
            let rate = load
                .udp_rate
                .map_or(0, |rate| (rate * f64::from(payload) * 8.0) as u64);
            give("-b", rate.to_string());
            // Microseconds: by default it sends a millisecond's worth in one burst, more than a socket holds.
            give("--pacing-timer", "100".to_owned());
            line.push("-u".to_owned());
        }
        (None, Some(name)) => give("-C", name.clone()),
        (None, None) => {}
    }
    match load.direction {
        Direction::Up => {}
        Direction::Down => line.push("-R".to_owned()),
        Direction::Both => line.push("--bidir".to_owned()),
    }
    line
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|&word| word.to_owned()).collect()
}

/// Could a server listen there? Bound only, and with `SO_REUSEADDR` as iperf3 sets it.
fn free(place: &Place, address: Ipv4Addr) -> Result<bool, BenchError> {
    place.run(move || {
        let tried = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| {
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from((address, PORT)).into())
        });
        !matches!(tried, Err(error) if error.kind() == std::io::ErrorKind::AddrInUse)
    })
}

/// A running iperf3; killed when dropped.
struct Running {
    child: Child,
    output: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    fn start(place: &Place, line: &[String]) -> Result<Self, BenchError> {
        let mut child = place.spawn(line, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::null());
        })?;
        let output = child.stdout.take().map(|mut pipe| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // Cut short by a kill, it is no JSON, which is told.
                let _ = pipe.read_to_end(&mut bytes);
                bytes
            })
        });
        Ok(Self { child, output })
    }

    /// Waits until it ends by itself.
    fn wait(mut self, limit: Duration, goes_on: &dyn Fn() -> bool) -> Result<String, BenchError> {
        let end = Instant::now() + limit;
        while matches!(self.child.try_wait(), Ok(None)) {
            if !goes_on() {
                return Err(BenchError::Stopped);
            }
            if Instant::now() > end {
                return Err(BenchError::Load(format!(
                    "nothing within {} s",
                    limit.as_secs()
                )));
            }
            thread::sleep(LOOK_UP);
        }
        self.end()
    }

    fn end(mut self) -> Result<String, BenchError> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let bytes = self
            .output
            .take()
            .and_then(|output| output.join().ok())
            .unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| BenchError::Load("no text".to_owned()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn report(text: &str) -> Result<Value, BenchError> {
    let report: Value = serde_json::from_str(text)
        .map_err(|error| BenchError::Load(format!("no JSON: {error}")))?;
    match report["error"].as_str() {
        Some(error) => Err(BenchError::Load(error.to_owned())),
        None => Ok(report),
    }
}

fn moved(load: &Load, client: &Value, server: &Value) -> Moved {
    let flow = |sender: &Value, receiver: &Value| flow(load, sender, receiver);
    Moved {
        up: (load.direction != Direction::Down).then(|| flow(client, server)),
        down: (load.direction != Direction::Up).then(|| flow(server, client)),
    }
}

fn flow(load: &Load, sender: &Value, receiver: &Value) -> Flow {
    let received = Intervals::of(receiver, false, load.warm_up);
    let sent = Intervals::of(sender, true, load.warm_up);
    let per_second = |count: f64, intervals: &Intervals| {
        if intervals.seconds > 0.0 {
            count / intervals.seconds
        } else {
            0.0
        }
    };
    let udp = load.udp_payload.map(f64::from);
    Flow {
        rate: per_second(received.bytes * 8.0, &received),
        bytes: received.bytes_in_all,
        retransmits: sent.retransmits,
        datagrams: udp.map(|payload| per_second(received.bytes / payload, &received)),
        lost: udp.map(|_| {
            if received.packets > 0.0 {
                (received.lost / received.packets).clamp(0.0, 1.0)
            } else {
                1.0
            }
        }),
        offered: udp.map(|payload| per_second(sent.bytes / payload, &sent)),
    }
}

/// The intervals of the streams one side sent or received, summed up.
#[derive(Default)]
struct Intervals {
    seconds: f64,
    bytes: f64,
    bytes_in_all: f64,
    retransmits: Option<f64>,
    packets: f64,
    lost: f64,
}

impl Intervals {
    fn of(report: &Value, sending: bool, warm_up: f64) -> Self {
        let mut sum = Self::default();
        for interval in report["intervals"].as_array().into_iter().flatten() {
            let mut seconds: f64 = 0.0;
            for stream in interval["streams"].as_array().into_iter().flatten() {
                if stream["sender"].as_bool() != Some(sending) {
                    continue;
                }
                let number = |name: &str| stream[name].as_f64().unwrap_or(0.0);
                sum.bytes_in_all += number("bytes");
                if number("start") + 0.01 < warm_up {
                    continue;
                }
                seconds = seconds.max(number("seconds"));
                sum.bytes += number("bytes");
                sum.packets += number("packets");
                sum.lost += number("lost_packets");
                if let Some(again) = stream["retransmits"].as_f64() {
                    *sum.retransmits.get_or_insert(0.0) += again;
                }
            }
            sum.seconds += seconds;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(direction: Direction, udp_payload: Option<u32>) -> Load {
        Load {
            to: Ipv4Addr::new(10, 0, 0, 2),
            streams: 10,
            direction,
            udp_payload,
            udp_rate: None,
            congestion_control: Some("cubic".to_owned()),
            seconds: 3,
            warm_up: 0.2,
        }
    }

    /// Bytes, whether it sends, retransmits.
    type Stream = (f64, bool, f64);

    /// Intervals of `(start, [(bytes, sender, retransmits)])`, 0.1 s each.
    fn made(intervals: &[(f64, &[Stream])]) -> Value {
        let intervals: Vec<Value> = intervals
            .iter()
            .map(|(start, streams)| {
                let streams: Vec<Value> = streams
                    .iter()
                    .map(|(bytes, sender, again)| {
                        serde_json::json!({"start": start, "seconds": 0.1, "bytes": bytes, "sender": sender, "retransmits": again,
                                           "packets": bytes / 100.0, "lost_packets": 1})
                    })
                    .collect();
                serde_json::json!({ "streams": streams })
            })
            .collect();
        serde_json::json!({ "intervals": intervals })
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let client = made(&[
            (0.0, &[(9.0, true, 5.0)]),
            (0.2, &[(9.0, true, 1.0), (9.0, true, 2.0)]),
        ]);
        let server = made(&[
            (0.0, &[(1_000.0, false, 0.0)]),
            (0.2, &[(1_000.0, false, 0.0), (500.0, false, 0.0)]),
        ]);
        let moved = moved(&load(Direction::Up, None), &client, &server);
        let up = moved.up.unwrap();
        assert!((up.rate - 120_000.0).abs() < 1e-6);
        assert_eq!(
            (up.bytes, up.retransmits, up.datagrams),
            (2_500.0, Some(3.0), None)
        );
        assert_eq!(moved.down, None);
    }

    #[test]
    fn both_ways_are_told_apart() {
        let client = made(&[(0.5, &[(9.0, true, 1.0), (400.0, false, 0.0)])]);
        let server = made(&[(0.5, &[(7.0, true, 2.0), (600.0, false, 0.0)])]);
        let moved = moved(&load(Direction::Both, None), &client, &server);
        assert_eq!(
            (moved.up.unwrap().bytes, moved.down.unwrap().bytes),
            (600.0, 400.0)
        );
        assert_eq!(moved.retransmits(), Some(3.0));
        assert!((moved.rate() - 80_000.0).abs() < 1e-6);
    }

    #[test]
    fn datagrams_are_counted_where_they_arrive() {
        let client = made(&[(0.2, &[(1_000.0, true, 0.0)])]);
        let server = made(&[(0.2, &[(500.0, false, 0.0)])]);
        let up = moved(&load(Direction::Up, Some(100)), &client, &server)
            .up
            .unwrap();
        assert!(
            (up.datagrams.unwrap() - 50.0).abs() < 1e-9
                && (up.offered.unwrap() - 100.0).abs() < 1e-9
        );
        assert!((up.lost.unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn every_wish_has_its_option() {
        let tcp = client_line(&load(Direction::Both, None)).join(" ");
        assert!(
            tcp.ends_with("-c 10.0.0.2 -t 3 -P 10 -C cubic --bidir"),
            "{tcp}"
        );
        let udp = client_line(&load(Direction::Up, Some(64))).join(" ");
        assert!(udp.ends_with("-l 64 -b 0 --pacing-timer 100 -u"), "{udp}");
    }
}
