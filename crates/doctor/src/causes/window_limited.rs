//! `window-limited`: a connection waits for room in a window, not for the road.
//!
//! Known from what the sender's TCP waited for (`tcp_info`): most of the busy time for the receiver's window or for its own
//! send buffer, a rate that is that window per round trip, and several connections that together go much faster. All
//! three: a receiver that is slow to read, or a road that is simply full, look like one of them.

use serde_json::json;
use wirespeed_facts::{Known, TcpProgress};
use wirespeed_measure::{Direction, Sample, Via};
use wirespeed_settings::Setting;
use wirespeed_words::say;

use crate::finding::{
    Check, Found, Outcome, line, milliseconds, percent, rate, rates_line, remedy_of,
};
use crate::probe::Probe;
use crate::view::{DIRECTIONS, FEWEST_SAMPLES, median, receiver, sender};
use crate::{Change, End, Evidence, Goal, Remedy, Severity, watched};

pub(super) const CODE: &str = "window-limited";

pub(super) const CHECK: Check = Check {
    slows: |evidence, direction| limited(evidence, direction).is_some(),
    wants: |evidence, direction| {
        let waits = waiting(evidence, direction).is_some();
        (waits && evidence.together(direction).is_none()).then_some(Probe::Several { direction })
    },
    ..Check::new(CODE, || say!("window-limited-title"), run)
};

/// Share of the busy time it must wait for the window.
const WAITS: f64 = 0.5;
/// A connection that was watched must have had something to send for this share of the time.
const BUSY: f64 = 0.3;
/// Several connections must be this many times as fast as one.
const SEVERAL_FASTER: f64 = 1.5;
/// The rate lies within this share of window per round trip.
const FITS_WITHIN: f64 = 0.35;
/// The window at its largest is at least this share of what the sysctl allows; below it grows, or a program chose it.
const AT_ITS_LIMIT: f64 = 0.4;
/// Nobody is advised to give a connection more than this, bytes.
const MOST: f64 = 128.0 * 1024.0 * 1024.0;

/// Whose window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    Receiver,
    Sender,
}

impl Window {
    /// By which the messages choose their words.
    fn key(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Limited {
    window: Window,
    /// Share of the busy time.
    waited: f64,
    /// Bytes.
    size: f64,
    /// Seconds.
    rtt: f64,
    one: f64,
    several: f64,
}

fn run(evidence: &Evidence) -> Outcome {
    if !evidence.loaded() {
        return Outcome {
            found: DIRECTIONS
                .into_iter()
                .filter_map(|direction| waited(evidence, direction))
                .collect(),
            not_known: vec![watched::no_load(
                evidence,
                &say!("window-limited-unknown-several"),
            )],
            ..Outcome::default()
        };
    }
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        let samples = evidence.samples(direction, Via::Tunnel);
        if !samples.is_empty() && samples.iter().all(|sample| sample.windows.is_none()) {
            outcome
                .not_known
                .push(say!("window-limited-unknown", direction = direction.word()));
        }
        outcome.found.extend(
            limited(evidence, direction).map(|limited| found(evidence, direction, limited)),
        );
    }
    outcome
}

/// The connection of the tunnel that was watched and waited most for a window. For information: its program may be slow
/// to read, and the road may have no more.
fn waited(evidence: &Evidence, direction: Direction) -> Option<Found> {
    let share = |connection: &TcpProgress| {
        let busy = connection
            .busy
            .filter(|busy| *busy >= BUSY * connection.seconds)?;
        let waits = [
            (Window::Receiver, connection.rwnd_limited),
            (Window::Sender, connection.sndbuf_limited),
        ];
        waits
            .into_iter()
            .filter_map(|(window, waited)| Some((window, waited? / busy.max(f64::EPSILON))))
            .filter(|(_, share)| *share >= WAITS)
            .max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let (connection, (window, share)) = watched::sending(evidence, direction)
        .filter_map(|connection| Some((connection, share(connection)?)))
        .max_by(|one, other| one.1.1.total_cmp(&other.1.1))?;
    let (end, name) = place(direction, window);
    let remote = connection.now.remote.to_string();
    Some(Found {
        severity: Severity::Info,
        confidence: 0.5,
        effect: 0.3,
        host: evidence.name(end).to_owned(),
        direction: Some(direction),
        evidence: vec![
            line(
                say!(
                    "window-limited-line-watched",
                    remote = &remote,
                    window = window.key()
                ),
                evidence.interface_at(sender(direction)),
                (),
                share.min(1.0),
                "share",
            ),
            line(
                say!("window-limited-line-watched-rate"),
                evidence.interface_at(sender(direction)),
                (),
                watched::rate_of(connection),
                "bit/s",
            ),
        ],
        because: say!(
            "window-limited-because-watched",
            remote = remote,
            share = percent(share.min(1.0)),
            window = window.key(),
            sysctl = name
        ),
        remedies: Vec::new(),
        refused: Vec::new(),
    })
}

/// Median of a figure over the loads through the tunnel.
fn over(
    evidence: &Evidence,
    direction: Direction,
    figure: fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let figures: Vec<f64> = evidence
        .samples(direction, Via::Tunnel)
        .into_iter()
        .filter_map(figure)
        .collect();
    (figures.len() >= FEWEST_SAMPLES).then(|| median(figures))?
}

/// The window a single connection waits for most of its busy time, and the share of that.
fn waiting(evidence: &Evidence, direction: Direction) -> Option<(Window, f64)> {
    let share = |figure| over(evidence, direction, figure).unwrap_or(0.0);
    let by_receiver = share(|sample| sample.windows.as_ref()?.receiver_limited);
    let by_sender = share(|sample| sample.windows.as_ref()?.sender_limited);
    let (window, waited) = if by_receiver >= by_sender {
        (Window::Receiver, by_receiver)
    } else {
        (Window::Sender, by_sender)
    };
    (waited >= WAITS).then_some((window, waited))
}

fn limited(evidence: &Evidence, direction: Direction) -> Option<Limited> {
    let (window, waited) = waiting(evidence, direction)?;
    let several = evidence.together(direction)?.rate;
    let over = |figure| over(evidence, direction, figure);
    let one = evidence.comparison(direction)?.tunnel;
    if several < SEVERAL_FASTER * one || one <= 0.0 {
        return None;
    }
    let rtt = over(|sample| sample.windows.as_ref()?.rtt).filter(|rtt| *rtt > 0.0)?;
    // What is under way is what the window lets out, whoever sets it.
    let size = over(|sample| Some(sample.windows.as_ref()?.in_flight? as f64))
        .or_else(|| over(|sample| Some(sample.windows.as_ref()?.offered_window? as f64)))?;
    let fits = (size * 8.0 / rtt / one - 1.0).abs() <= FITS_WITHIN;
    let limit = sysctl_limit(evidence, direction, window);
    let at_its_limit = limit.is_none_or(|(_, limit)| size >= AT_ITS_LIMIT * limit / 2.0);
    (fits && at_its_limit).then_some(Limited {
        window,
        waited,
        size,
        rtt,
        one,
        several,
    })
}

/// The end, and the largest buffer it gives a connection by itself (third figure of `tcp_rmem` or `tcp_wmem`).
fn sysctl_limit(evidence: &Evidence, direction: Direction, window: Window) -> Option<(End, f64)> {
    let (end, name) = place(direction, window);
    let text = evidence
        .facts(end)?
        .sysctls
        .get(name)
        .and_then(Known::value)?;
    let limit: f64 = text.split_whitespace().nth(2)?.parse().ok()?;
    Some((end, limit))
}

fn place(direction: Direction, window: Window) -> (End, &'static str) {
    match window {
        Window::Receiver => (receiver(direction), "net.ipv4.tcp_rmem"),
        Window::Sender => (sender(direction), "net.ipv4.tcp_wmem"),
    }
}

fn found(evidence: &Evidence, direction: Direction, limited: Limited) -> Found {
    let (end, name) = place(direction, limited.window);
    let window = limited.window.key();
    let from = evidence.name(sender(direction));
    let mut lines = vec![
        line(
            say!(
                "window-limited-line-waited",
                window = window,
                direction = direction.word()
            ),
            from,
            (),
            limited.waited,
            "share",
        ),
        line(
            say!(
                "window-limited-line-under-way",
                rtt = milliseconds(limited.rtt),
                direction = direction.word()
            ),
            from,
            (),
            limited.size.round() as u64,
            "bytes",
        ),
        line(
            say!("window-limited-line-rates", direction = direction.word()),
            from,
            limited.one,
            limited.several,
            "bit/s",
        ),
    ];
    if let Some((_, limit)) = sysctl_limit(evidence, direction, limited.window) {
        lines.push(line(
            say!("window-limited-line-largest", sysctl = name),
            evidence.name(end),
            (),
            limit,
            "bytes",
        ));
    }
    lines.extend(rates_line(evidence, direction));
    Found {
        severity: Severity::Warning,
        confidence: 0.85,
        effect: (1.0 - limited.one / limited.several.max(1.0)).clamp(0.0, 1.0),
        host: evidence.name(end).to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: say!(
            "window-limited-because",
            rate = rate(limited.one),
            share = percent(limited.waited),
            window = window,
            bytes = limited.size.round(),
            rtt = milliseconds(limited.rtt),
            several = rate(limited.several)
        ),
        remedies: larger(evidence, direction, limited).into_iter().collect(),
        refused: Vec::new(),
    }
}

/// Room for twice what the road holds in a round trip; half of a buffer is the window.
fn larger(evidence: &Evidence, direction: Direction, limited: Limited) -> Option<Remedy> {
    let (end, name) = place(direction, limited.window);
    let text = evidence
        .facts(end)?
        .sysctls
        .get(name)
        .and_then(Known::value)?;
    let figures: Vec<&str> = text.split_whitespace().collect();
    let [least, first, now] = figures.as_slice() else {
        return None;
    };
    let road = evidence
        .comparison(direction)
        .and_then(|comparison| comparison.bare)
        .unwrap_or(0.0)
        .max(limited.several)
        .max(evidence.expected_rate.unwrap_or(0.0));
    let mebibyte = 1024.0 * 1024.0;
    let bytes = (2.0 * road / 8.0 * limited.rtt).clamp(mebibyte, MOST);
    let bytes = ((bytes / mebibyte).ceil() * mebibyte) as u64;
    if now.parse::<u64>().is_ok_and(|now| now >= bytes) {
        return None;
    }
    let setting = Setting::Sysctl {
        name: name.to_owned(),
    };
    Some(remedy_of(
        evidence,
        say!(
            "window-limited-remedy",
            host = evidence.name(end),
            mebibytes = bytes >> 20
        ),
        vec![(
            Change {
                end,
                setting,
                value: json!(format!("{least} {first} {bytes}")),
            },
            json!(text.trim()),
        )],
        Goal::Goodput,
        say!("window-limited-risk", mebibytes = bytes >> 20),
    ))
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;
    use wirespeed_measure::{Direction, Via};

    use super::CODE;
    use crate::probe::Probe;
    use crate::testing::{
        connection, each_sample, facts_of, healthy, not_checked, nothing, only_finding, sample,
        watched, windows,
    };
    use crate::{End, Evidence, Severity};

    /// 256 KiB at 80 ms: 26 Mbit/s of a road that gives eight streams 90.
    fn limited(waited: f64) -> Evidence {
        let mut evidence = healthy();
        for via in [Via::Bare, Via::Tunnel] {
            each_sample(&mut evidence, Direction::Upload, via, |sample| {
                let mut seen = windows();
                seen.receiver_limited = Some(waited);
                seen.in_flight = Some(262_144);
                seen.rtt = Some(0.08);
                sample.windows = Some(seen);
            });
        }
        evidence.comparisons[0].tunnel = 26e6;
        evidence.comparisons[0].bare = Some(26e6);
        let mut soak = sample(Via::Tunnel, Direction::Upload, 90e6);
        soak.load.streams = 8;
        evidence.soaks.push(soak);
        facts_of(&mut evidence, End::Far).sysctls.insert(
            "net.ipv4.tcp_rmem".to_owned(),
            Known::Value("4096 131072 524288".to_owned()),
        );
        evidence
    }

    #[test]
    fn half_of_the_time_is_found_and_less_is_not() {
        nothing(&limited(0.49));
        let finding = only_finding(&limited(0.5), CODE);
        assert_eq!(
            (finding.host.as_str(), finding.direction),
            ("server", Some(Direction::Upload))
        );
        let remedy = &finding.remedies[0];
        assert_eq!(remedy.changes[0].value, "4096 131072 2097152");
        assert!(remedy.undo.contains("524288"));
    }

    #[test]
    fn several_connections_that_are_no_faster_have_the_same_road() {
        let mut evidence = limited(0.9);
        evidence.soaks[0].rate = 38e6;
        nothing(&evidence);
        evidence.soaks[0].rate = 39e6;
        only_finding(&evidence, CODE);
        evidence.soaks.clear();
        nothing(&evidence);
    }

    #[test]
    fn a_rate_that_is_not_the_windows_has_another_reason() {
        let mut evidence = limited(0.9);
        evidence.comparisons[0].tunnel = 15e6;
        nothing(&evidence);
    }

    #[test]
    fn a_receiver_that_is_slow_to_read_is_not_a_small_buffer() {
        let mut evidence = limited(0.9);
        facts_of(&mut evidence, End::Far).sysctls.insert(
            "net.ipv4.tcp_rmem".to_owned(),
            Known::Value("4096 131072 33554432".to_owned()),
        );
        nothing(&evidence);
    }

    #[test]
    fn the_senders_own_buffer_is_told_apart() {
        let mut evidence = limited(0.0);
        each_sample(&mut evidence, Direction::Upload, Via::Tunnel, |sample| {
            sample.windows.as_mut().unwrap().sender_limited = Some(0.8);
        });
        facts_of(&mut evidence, End::Here).sysctls.insert(
            "net.ipv4.tcp_wmem".to_owned(),
            Known::Value("4096 16384 524288".to_owned()),
        );
        let finding = only_finding(&evidence, CODE);
        assert_eq!(finding.host, "client");
        assert_eq!(finding.remedies[0].changes[0].value, "4096 16384 2097152");
    }

    #[test]
    fn a_watched_connection_that_waits_is_for_information() {
        let mut evidence = watched();
        nothing(&evidence);
        connection(&mut evidence).rwnd_limited = Some(4.9);
        nothing(&evidence);
        connection(&mut evidence).rwnd_limited = Some(5.0);
        let finding = only_finding(&evidence, CODE);
        assert_eq!(
            (finding.severity, finding.host.as_str()),
            (Severity::Info, "server")
        );
        // A program that has little to send waits for itself.
        connection(&mut evidence).busy = Some(2.9);
        nothing(&evidence);
    }

    #[test]
    fn several_connections_are_asked_for_where_one_waits() {
        let mut evidence = limited(0.9);
        assert_eq!((super::CHECK.wants)(&evidence, Direction::Upload), None);
        evidence.soaks.clear();
        assert_eq!(
            (super::CHECK.wants)(&evidence, Direction::Upload),
            Some(Probe::Several {
                direction: Direction::Upload
            })
        );
        assert_eq!((super::CHECK.wants)(&healthy(), Direction::Upload), None);
    }

    #[test]
    fn without_tcp_info_it_is_not_known() {
        let mut evidence = healthy();
        for direction in [Direction::Upload, Direction::Download] {
            each_sample(&mut evidence, direction, Via::Tunnel, |sample| {
                sample.windows = None;
            });
        }
        nothing(&evidence);
        assert!(not_checked(&evidence, CODE));
    }
}
