//! What the TCP of a load waits for: `tcp_info` of its connections, read again and again while it runs.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wirespeed_facts::{Connections, ConnectionsWanted, Known, TcpConnection, TcpProgress};

use crate::Windows;
use crate::statistics::median;

/// Seconds between two readings, and how many of them a short load has at least.
const INTERVAL: f64 = 0.2;
const READINGS_AT_LEAST: f64 = 8.0;
const INTERVAL_AT_LEAST: f64 = 0.05;
/// How often to look for connections that are not there yet.
const LOOK_UP: Duration = Duration::from_millis(30);

/// Which connections, and when.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TcpWatch {
    /// So many, beside iperf3's own control connection.
    pub(crate) streams: u32,
    /// Seconds from their beginning until the first reading that counts.
    pub(crate) warm_up: f64,
    /// Seconds from the first to the last that counts.
    pub(crate) seconds: f64,
}

/// What was read at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TcpWatched {
    /// As the sender sees them; at the receiver only the buffer is of interest.
    pub(crate) windows: Windows,
    /// Largest receive buffer of one connection.
    pub(crate) receive_buffer: Option<u64>,
}

/// Watches the connections to a server's `port` (of this machine's own server: `server` is `None`) until their time is
/// over, or `over` says so. `None` = there was nothing to be read twice.
pub(crate) fn watch(
    port: u16,
    server: Option<IpAddr>,
    watch: &TcpWatch,
    over: &dyn Fn() -> bool,
) -> Option<TcpWatched> {
    let wanted = ConnectionsWanted {
        ports: vec![port],
        ..ConnectionsWanted::default()
    };
    let seconds = watch.seconds.clamp(0.0, 3_600.0);
    let interval =
        Duration::from_secs_f64((seconds / READINGS_AT_LEAST).clamp(INTERVAL_AT_LEAST, INTERVAL));
    let mut readings = Readings::new(watch.streams as usize);
    // The connections of the load are there when there is one more than the control connection.
    let read = || {
        wirespeed_facts::connections(&wanted).map(|mut found| {
            found.wanted.retain(|one| match server {
                Some(server) => one.remote == SocketAddr::new(server, port),
                None => one.local.port() == port,
            });
            found
        })
    };
    let begun = loop {
        match read() {
            Known::Value(found) if found.wanted.len() > watch.streams as usize => {
                break Instant::now();
            }
            Known::Unknown(_) => return None,
            Known::Value(_) => {}
        }
        if over() {
            return None;
        }
        std::thread::sleep(LOOK_UP);
    };
    let first = begun + Duration::from_secs_f64(watch.warm_up.clamp(0.0, 3_600.0));
    let last = first + Duration::from_secs_f64(seconds);
    let mut next = first;
    loop {
        while Instant::now() < next {
            if over() {
                return readings.sum_up();
            }
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(LOOK_UP));
        }
        if let Known::Value(found) = read() {
            // A reading that the end of the load made small would pair with nothing.
            if !readings.add(found) {
                return readings.sum_up();
            }
        }
        if next >= last {
            return readings.sum_up();
        }
        next = (next + interval).min(last);
    }
}

/// Readings, summed up as they come: the first and the latest whole, of the others only sums.
struct Readings {
    streams: usize,
    first: Option<Connections>,
    latest: Option<Connections>,
    congestion_windows: Vec<f64>,
    in_flight: Vec<f64>,
    offered_windows: Vec<f64>,
    rtts: Vec<f64>,
    reordering: u32,
    segment: Option<u32>,
    receive_buffer: u64,
}

impl Readings {
    fn new(streams: usize) -> Self {
        Self {
            streams,
            first: None,
            latest: None,
            congestion_windows: Vec::new(),
            in_flight: Vec::new(),
            offered_windows: Vec::new(),
            rtts: Vec::new(),
            reordering: 0,
            segment: None,
            receive_buffer: 0,
        }
    }

    /// `false` = the load has ended.
    fn add(&mut self, mut found: Connections) -> bool {
        // The control connection carries a few hundred bytes, also where the others are stuck with what they sent first.
        found
            .wanted
            .sort_by_key(|connection| std::cmp::Reverse(traffic(connection)));
        if found.wanted.len() <= self.streams && self.first.is_some() {
            return false;
        }
        found.wanted.truncate(self.streams);
        let sum = |figure: &dyn Fn(&TcpConnection) -> Option<f64>| -> Option<f64> {
            found.wanted.iter().map(figure).sum()
        };
        let bytes = |segments: u32, mss: u32| f64::from(segments) * f64::from(mss);
        let mean_rtt = sum(&|one| Some(one.info.rtt)).map(|sum| sum / found.wanted.len() as f64);
        for (figures, figure) in [
            (
                &mut self.congestion_windows,
                sum(&|one| Some(bytes(one.info.cwnd, one.info.mss))),
            ),
            (
                &mut self.in_flight,
                sum(&|one| Some(bytes(one.info.unacked, one.info.mss))),
            ),
            (
                &mut self.offered_windows,
                sum(&|one| one.info.send_window.map(f64::from)),
            ),
            (&mut self.rtts, mean_rtt.filter(|rtt| rtt.is_finite())),
        ] {
            figures.extend(figure);
        }
        for one in &found.wanted {
            self.reordering = self.reordering.max(one.info.reordering);
            let segments = [self.segment, Some(one.info.mss)];
            self.segment = segments.into_iter().flatten().min();
            let buffer = one.receive_buffer.unwrap_or(0);
            self.receive_buffer = self.receive_buffer.max(u64::from(buffer));
        }
        if self.first.is_none() {
            self.first = Some(found);
        } else {
            self.latest = Some(found);
        }
        true
    }

    fn sum_up(&self) -> Option<TcpWatched> {
        let (first, latest) = (self.first.as_ref()?, self.latest.as_ref()?);
        let progress = latest.since(first);
        let seconds = latest.at - first.at;
        if progress.is_empty() || seconds <= 0.0 || !seconds.is_finite() {
            return None;
        }
        let sum = |figure: fn(&TcpProgress) -> Option<f64>| -> Option<f64> {
            progress.iter().map(figure).sum()
        };
        let busy = sum(|one| one.busy);
        // The kernel counts in ticks; a share can't be more than all of it.
        let of_busy = |limited: Option<f64>| {
            let share = limited? / busy?;
            share.is_finite().then_some(share.min(1.0))
        };
        let median_bytes = |figures: &[f64]| median(figures).map(|bytes| bytes as u64);
        let now = || progress.iter().map(|one| &one.now);
        Some(TcpWatched {
            windows: Windows {
                connections: progress.len() as u32,
                seconds,
                busy: busy.map(|busy| (busy / seconds / progress.len() as f64).min(1.0)),
                receiver_limited: of_busy(sum(|one| one.rwnd_limited)),
                sender_limited: of_busy(sum(|one| one.sndbuf_limited)),
                congestion_window: median_bytes(&self.congestion_windows),
                in_flight: median_bytes(&self.in_flight),
                offered_window: median_bytes(&self.offered_windows),
                rtt: median(&self.rtts),
                min_rtt: now()
                    .filter_map(|one| one.info.min_rtt)
                    .min_by(f64::total_cmp),
                send_buffer: now().filter_map(|one| one.send_buffer).map(u64::from).max(),
                receive_buffer: None,
                reordering: Some(self.reordering),
                duplicates_reported: duplicates(first, latest),
                congestion_control: now().find_map(|one| one.congestion_control.clone()),
                segment: self.segment,
            },
            receive_buffer: Some(self.receive_buffer).filter(|buffer| *buffer > 0),
        })
    }
}

fn traffic(connection: &TcpConnection) -> u64 {
    let info = &connection.info;
    [info.bytes_sent, info.bytes_acked, info.bytes_received]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(0)
}

fn duplicates(first: &Connections, latest: &Connections) -> Option<u64> {
    latest
        .wanted
        .iter()
        .filter_map(|now| {
            let before = first.wanted.iter().find(|one| one.cookie == now.cookie)?;
            Some((before.info.duplicates, now.info.duplicates))
        })
        .map(|(before, now)| Some(u64::from(now?.checked_sub(before?)?)))
        .sum()
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::TcpInfo;

    use super::*;

    fn connection(cookie: u64, info: TcpInfo) -> TcpConnection {
        TcpConnection {
            local: "10.0.0.1:40000".parse().unwrap(),
            remote: "10.0.0.2:5201".parse().unwrap(),
            inode: 1,
            cookie,
            congestion_control: Some("bbr".to_owned()),
            receive_queue: 0,
            send_queue: 0,
            receive_buffer: Some(131_072),
            send_buffer: Some(87_040),
            info,
        }
    }

    fn reading(at: f64, busy: f64, limited: f64, window: u32) -> Connections {
        let stream = |cookie| {
            connection(
                cookie,
                TcpInfo {
                    cwnd: 10,
                    mss: 1000,
                    unacked: 5,
                    rtt: 0.02,
                    reordering: 3,
                    busy: Some(busy),
                    rwnd_limited: Some(limited),
                    sndbuf_limited: Some(0.0),
                    send_window: Some(window),
                    bytes_sent: Some((at * 1e6) as u64),
                    duplicates: Some(at as u32),
                    ..TcpInfo::default()
                },
            )
        };
        let control = TcpInfo {
            bytes_sent: Some(300),
            cwnd: 99,
            ..TcpInfo::default()
        };
        Connections {
            at,
            wanted: vec![connection(1, control), stream(2), stream(3)],
            ..Connections::default()
        }
    }

    #[test]
    fn shares_are_of_the_time_between_the_first_and_the_last_reading() {
        let mut readings = Readings::new(2);
        assert!(readings.add(reading(10.0, 1.0, 0.5, 60_000)));
        assert!(readings.sum_up().is_none());
        assert!(readings.add(reading(11.0, 2.0, 1.25, 64_000)));
        assert!(readings.add(reading(12.0, 3.0, 2.0, 64_000)));
        let watched = readings.sum_up().unwrap();
        let windows = &watched.windows;
        assert_eq!((windows.connections, windows.seconds), (2, 2.0));
        assert_eq!(windows.busy, Some(1.0));
        assert_eq!(windows.receiver_limited, Some(0.75));
        assert_eq!(windows.sender_limited, Some(0.0));
        assert_eq!(windows.congestion_window, Some(20_000));
        assert_eq!(windows.in_flight, Some(10_000));
        assert_eq!(windows.offered_window, Some(128_000));
        assert_eq!(windows.duplicates_reported, Some(4));
        assert_eq!(windows.reordering, Some(3));
        assert_eq!(windows.segment, Some(1000));
        assert_eq!(watched.receive_buffer, Some(131_072));
        // Streams that are gone end it.
        let mut ended = reading(13.0, 3.0, 2.0, 0);
        ended.wanted.truncate(1);
        assert!(!readings.add(ended));
        assert_eq!(readings.sum_up().unwrap(), watched);
    }

    /// Segments that grew again do not hide that they were small for a while.
    #[test]
    fn the_smallest_segment_counts() {
        let mut readings = Readings::new(2);
        for (at, segment) in [(10.0, 1000), (11.0, 512), (12.0, 1000)] {
            let mut reading = reading(at, at - 9.0, 0.0, 60_000);
            reading.wanted[2].info.mss = segment;
            assert!(readings.add(reading));
        }
        let windows = readings.sum_up().unwrap().windows;
        assert_eq!(windows.segment, Some(512));
    }

    #[test]
    fn what_the_kernel_does_not_tell_stays_unknown() {
        let old = |at: f64| {
            let mut reading = reading(at, 1.0, 0.5, 1);
            for one in &mut reading.wanted {
                one.info.busy = None;
                one.info.send_window = None;
                one.info.duplicates = None;
            }
            reading
        };
        let mut readings = Readings::new(2);
        assert!(readings.add(old(1.0)) && readings.add(old(2.0)));
        let windows = readings.sum_up().unwrap().windows;
        assert_eq!((windows.busy, windows.receiver_limited), (None, None));
        assert_eq!(
            (windows.offered_window, windows.duplicates_reported),
            (None, None)
        );
        // Never busy: no share of nothing.
        let mut readings = Readings::new(2);
        assert!(readings.add(reading(1.0, 1.0, 0.5, 1)) && readings.add(reading(2.0, 1.0, 0.5, 1)));
        assert_eq!(readings.sum_up().unwrap().windows.receiver_limited, None);
    }

    #[test]
    fn a_clock_that_jumps_back_gives_nothing() {
        let mut readings = Readings::new(2);
        assert!(readings.add(reading(9.0, 1.0, 0.5, 1)) && readings.add(reading(4.0, 2.0, 0.5, 1)));
        assert!(readings.sum_up().is_none());
    }
}
