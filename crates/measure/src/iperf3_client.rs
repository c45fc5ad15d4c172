//! One load: an iperf3 client in the agent's namespace, and an echo train beside it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::child;
use crate::echo::{self, EchoReport, EchoTrain};
use crate::iperf3_report::Iperf3Report;
use crate::tcp_watch::{self, TcpWatch, TcpWatched};

/// Seconds between two of iperf3's intervals (its smallest).
pub(crate) const INTERVAL_SECONDS: &str = "0.1";
/// How long the control connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// iperf3 3.12 has 32 bits for bytes per second.
const FQ_RATE_AT_MOST: u64 = 30_000_000_000;
/// How long iperf3 may take to print after SIGTERM.
const PRINT_WITHIN: Duration = Duration::from_millis(700);

/// One run of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Iperf3Run {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Whole seconds: iperf3 3.12 knows no others.
    pub(crate) seconds: u32,
    pub(crate) streams: u32,
    /// The server sends.
    pub(crate) reverse: bool,
    /// UDP with so many bytes of payload; `None` = TCP.
    pub(crate) udp_payload: Option<u32>,
    /// bit/s of each stream; `None` = unlimited. Over TCP it is the client's when sending, and nobody's when receiving:
    /// iperf3 3.12 does not tell the server.
    pub(crate) rate_per_stream: Option<u64>,
    pub(crate) congestion_control: Option<String>,
    /// Seconds iperf3 may need beyond the load itself, to connect and to exchange results.
    pub(crate) grace: f64,
    /// Leave by this interface only.
    pub(crate) device: Option<String>,
    /// Echo requests to this address, so many seconds apart, while the load runs.
    pub(crate) echo: Option<(IpAddr, f64)>,
    /// Read what its TCP waits for.
    #[serde(default)]
    pub(crate) tcp: Option<TcpWatch>,
}

/// What the run left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Iperf3Outcome {
    pub(crate) report: Iperf3Report,
    /// Seconds since the Unix epoch.
    pub(crate) started_at: f64,
    /// Seconds from the client's start to its end.
    pub(crate) elapsed: f64,
    /// It did not end by itself in its time.
    pub(crate) overran: bool,
    /// The client could not be started.
    pub(crate) missing: Option<String>,
    /// The echo train; times are from the client's start.
    pub(crate) echoes: Option<Result<EchoReport, String>>,
    /// What its TCP waited for.
    #[serde(default)]
    pub(crate) tcp: Option<TcpWatched>,
}

/// Runs the client to its end, its time limit, or until `keep_going` says no.
pub(crate) fn run(
    run: &Iperf3Run,
    keep_going: &(dyn Fn() -> bool + Sync),
) -> Result<Iperf3Outcome, String> {
    let limit = Duration::from_secs(u64::from(run.seconds))
        + Duration::from_secs_f64(run.grace.clamp(0.0, 60.0));
    let started_at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64());
    let begun = Instant::now();
    let mut client = child::Running::start("iperf3", &arguments(run))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let echoes = run.echo.map(|(to, interval)| {
            let train = EchoTrain {
                interface: run.device.clone(),
                ..beside(to, interval, limit)
            };
            let over = &over;
            scope.spawn(move || echo::run(&train, &|| !over.load(Ordering::SeqCst)))
        });
        let tcp = run.tcp.map(|watch| {
            let over = &over;
            scope.spawn(move || {
                let over = || over.load(Ordering::SeqCst);
                tcp_watch::watch(run.port, Some(run.address), &watch, &over)
            })
        });
        let in_time = client.wait(limit, keep_going);
        over.store(true, Ordering::SeqCst);
        if !in_time {
            client.terminate(PRINT_WITHIN);
        }
        let elapsed = begun.elapsed().as_secs_f64();
        let ended = client.finish()?;
        let missing = (ended.status.code() == Some(127)).then(|| last_line(&ended.stderr));
        let mut report = Iperf3Report::parse(&ended.stdout);
        if ended.stdout.trim().is_empty() && !ended.stderr.trim().is_empty() {
            report.error = Some(last_line(&ended.stderr));
        }
        Ok(Iperf3Outcome {
            report,
            started_at,
            elapsed,
            overran: !in_time,
            missing,
            echoes: echoes.map(|train| {
                train
                    .join()
                    .unwrap_or_else(|_| Err("the echo train panicked".to_owned()))
            }),
            tcp: tcp.and_then(|watch| watch.join().ok().flatten()),
        })
    })
}

fn beside(to: IpAddr, interval: f64, limit: Duration) -> EchoTrain {
    EchoTrain {
        to,
        // As `ping` sends: 56 bytes of payload.
        sizes: vec![if to.is_ipv4() { 84 } else { 104 }],
        count: (limit.as_secs_f64() / interval.max(0.001)) as u32,
        interval,
        wait: 0.0,
        dont_fragment: false,
        source: None,
        interface: None,
        token: rand::random(),
    }
}

fn arguments(run: &Iperf3Run) -> Vec<String> {
    let mut arguments: Vec<String> = ["-J", "-i", INTERVAL_SECONDS].map(str::to_owned).to_vec();
    let mut give = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    give("-c", run.address.to_string());
    give("-p", run.port.to_string());
    give("-t", run.seconds.to_string());
    give("-P", run.streams.to_string());
    give("--connect-timeout", CONNECT_WITHIN.as_millis().to_string());
    if let Some(payload) = run.udp_payload {
        give("-l", payload.to_string());
    }
    match (run.udp_payload, run.rate_per_stream) {
        // UDP without a rate would be 1 Mbit/s; 0 is unlimited.
        (Some(_), rate) => give("-b", rate.unwrap_or(0).to_string()),
        // TCP paces itself: with `-b` it would catch up later, above the rate, with what it could not send in time.
        (None, Some(rate)) => give("--fq-rate", rate.min(FQ_RATE_AT_MOST).to_string()),
        (None, None) => {}
    }
    if let Some(device) = &run.device {
        give("--bind-dev", device.clone());
    }
    if let Some(name) = &run.congestion_control {
        give("-C", name.clone());
    }
    if run.udp_payload.is_some() {
        arguments.push("-u".to_owned());
    }
    if run.reverse {
        arguments.push("-R".to_owned());
    }
    arguments
}

/// The last line with something in it, bounded.
pub(crate) fn last_line(text: &str) -> String {
    let line = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    line.trim().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp() -> Iperf3Run {
        Iperf3Run {
            address: "10.0.0.2".parse().unwrap(),
            port: 5201,
            seconds: 3,
            streams: 10,
            reverse: false,
            udp_payload: None,
            rate_per_stream: None,
            congestion_control: None,
            grace: 3.0,
            device: None,
            echo: None,
            tcp: None,
        }
    }

    #[test]
    fn a_tcp_load_says_no_more_than_it_must() {
        let line = arguments(&tcp()).join(" ");
        assert_eq!(
            line,
            "-J -i 0.1 -c 10.0.0.2 -p 5201 -t 3 -P 10 --connect-timeout 3000"
        );
    }

    #[test]
    fn every_wish_has_its_option() {
        let run = Iperf3Run {
            reverse: true,
            rate_per_stream: Some(5_000_000),
            congestion_control: Some("cubic".to_owned()),
            device: Some("eth0".to_owned()),
            ..tcp()
        };
        assert!(
            arguments(&run)
                .join(" ")
                .ends_with("--fq-rate 5000000 --bind-dev eth0 -C cubic -R")
        );
        let run = Iperf3Run {
            udp_payload: Some(1392),
            rate_per_stream: Some(7),
            ..tcp()
        };
        assert!(arguments(&run).join(" ").ends_with("-l 1392 -b 7 -u"));
        let run = Iperf3Run {
            udp_payload: Some(1392),
            ..tcp()
        };
        assert!(arguments(&run).join(" ").ends_with("-l 1392 -b 0 -u"));
    }
}
