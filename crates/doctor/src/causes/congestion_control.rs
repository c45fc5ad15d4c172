//! `congestion-control`: the sender takes loss for congestion where it is not.
//!
//! Believed only when another congestion control, tried in turn with the present one, gains for sure, and nothing else
//! explains the loss. A queue that fills up is such an explanation: there the loss *is* congestion, and any sender would
//! see it. So the trial is made only where the RTT hardly grows under load.

use std::collections::BTreeSet;
use wirespeed_words::say;

use serde_json::json;
use wirespeed_facts::{Known, Tunnel};
use wirespeed_measure::{Direction, Sample, Via};
use wirespeed_settings::{Setting, Value, shell_word};

use crate::finding::{Check, Found, Outcome, command, line, percent, rates_line, remedy_of};
use crate::probe::Probe;
use crate::slow_start::later;
use crate::view::{DIRECTIONS, FEWEST_PAIRS, sender};
use crate::{Change, CongestionTrial, End, Evidence, Goal, Remedy, Severity, watched};

pub(super) const CODE: &str = "congestion-control";

pub(super) const CHECK: Check = Check {
    wants: |evidence, direction| {
        let tried = trial(evidence, direction).is_some();
        let undecided = super::collapse_above_rate::undecided(evidence, direction);
        (suspected(evidence, direction) && !tried && !undecided)
            .then_some(Probe::Congestion { direction })
    },
    ..Check::new(CODE, || say!("congestion-control-title"), run)
};

/// The lower end of the gain's interval must exceed this.
const WORTH_IT: f64 = 0.10;
/// Retransmitted share of the segments from which loss plays a part.
const LOSSY: f64 = 0.001;
/// Algorithms of Linux that halve (or the like) upon loss.
const LOSS_BASED: [&str; 9] = [
    "bic",
    "cubic",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "reno",
    "scalable",
    "westwood",
];
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
const DEFAULT: &str = "net.ipv4.tcp_congestion_control";

fn run(evidence: &Evidence) -> Outcome {
    if !evidence.loaded() {
        let again: Vec<String> = DIRECTIONS
            .into_iter()
            .filter_map(|direction| sent_again(evidence, direction))
            .collect();
        return Outcome {
            not_known: if again.is_empty() {
                vec![watched::no_load(
                    evidence,
                    &say!("congestion-control-unknown-load"),
                )]
            } else {
                again
            },
            ..Outcome::default()
        };
    }
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        if !suspected(evidence, direction) {
            continue;
        }
        match trial(evidence, direction) {
            // A pair is two samples.
            Some(trial) if trial.samples.len() < 2 * FEWEST_PAIRS => {
                outcome.not_known.push(say!(
                    "congestion-control-unknown-pairs",
                    direction = direction.word(),
                    pairs = trial.samples.len() / 2,
                    needed = FEWEST_PAIRS
                ));
            }
            Some(trial) if trial.gain.low > WORTH_IT => outcome.found.push(found(evidence, trial)),
            Some(_) => {}
            None => outcome.not_known.push(say!(
                "congestion-control-unknown-tried",
                direction = direction.word()
            )),
        }
    }
    outcome
}

/// What the connections that were watched sent again; why, only loads and probes can tell.
fn sent_again(evidence: &Evidence, direction: Direction) -> Option<String> {
    let (again, sent) = watched::sending(evidence, direction)
        .filter_map(|connection| {
            let again = connection.bytes_retransmitted?;
            Some((again, connection.bytes_acked?))
        })
        .fold((0_u64, 0_u64), |sum, one| {
            (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
        });
    let share = again as f64 / sent.max(1) as f64;
    (share >= LOSSY).then(|| {
        say!(
            "congestion-control-unknown-again",
            direction = direction.word(),
            percent = share * 100.0
        )
    })
}

fn trial(evidence: &Evidence, direction: Direction) -> Option<&CongestionTrial> {
    let mut trials = evidence.congestion_trials.iter();
    trials.find(|trial| trial.direction == direction)
}

/// Is a trial worth its time in this direction: a loss-based sender, retransmits, no queue that fills, and nothing else
/// that explains them?
pub(crate) fn suspected(evidence: &Evidence, direction: Direction) -> bool {
    let samples = evidence.samples(direction, Via::Tunnel);
    // One load alone may have met somebody else's burst.
    let lossy = samples
        .iter()
        .filter(|sample| later(evidence, sample).is_some_and(|later| later.again > 0))
        .count();
    backs_off_from_loss(evidence, direction)
        && lossy * 2 >= samples.len()
        && retransmitted_share(evidence, direction, &samples).is_some_and(|share| share >= LOSSY)
        // Loss without any load is none of a queue's.
        && (!super::bufferbloat::queue_fills(evidence, direction)
            || super::path_loss::in_direction(evidence, direction))
        && !super::explained(evidence, direction)
}

/// Is another congestion control proved to be better here?
pub(super) fn proved(evidence: &Evidence, direction: Direction) -> bool {
    suspected(evidence, direction)
        && trial(evidence, direction).is_some_and(|trial| {
            trial.samples.len() >= 2 * FEWEST_PAIRS && trial.gain.low > WORTH_IT
        })
}

/// Does the sender take every loss for congestion? False where it is not known what it uses.
pub(super) fn backs_off_from_loss(evidence: &Evidence, direction: Direction) -> bool {
    sender_uses(evidence, direction).is_some_and(|name| LOSS_BASED.contains(&name.as_str()))
}

/// What the sender uses: as the loads tell, else its default.
pub(crate) fn sender_uses(evidence: &Evidence, direction: Direction) -> Option<String> {
    used(
        evidence,
        direction,
        &evidence.samples(direction, Via::Tunnel),
    )
}

fn used(evidence: &Evidence, direction: Direction, samples: &[&Sample]) -> Option<String> {
    samples
        .iter()
        .find_map(|sample| sample.congestion_control.clone())
        .or_else(|| {
            evidence
                .facts(sender(direction))?
                .sysctls
                .get(DEFAULT)?
                .value()
                .map(|text| text.trim().to_owned())
        })
}

/// Share of the segments sent again, over all samples together, but for what each lost at its start.
pub(super) fn retransmitted_share(
    evidence: &Evidence,
    direction: Direction,
    samples: &[&Sample],
) -> Option<f64> {
    let counted = samples.iter().filter_map(|sample| later(evidence, sample));
    let (again, bytes) = counted.fold((0_u64, 0.0), |(again, bytes), later| {
        (again.saturating_add(later.again), bytes + later.bytes)
    });
    let segment = evidence.tunnel(sender(direction)).map_or(1368.0, |tunnel| {
        f64::from(tunnel.mtu.saturating_sub(52).max(500))
    });
    let segments = (bytes / segment).floor();
    (segments > 0.0).then(|| again as f64 / segments)
}

fn found(evidence: &Evidence, trial: &CongestionTrial) -> Found {
    let direction = trial.direction;
    let end = sender(direction);
    let samples = evidence.samples(direction, Via::Tunnel);
    let median_of = |name: &str| {
        crate::view::median(
            trial
                .samples
                .iter()
                .filter(|sample| {
                    sample.load.congestion_control.as_deref() == Some(name)
                        || (name == trial.current && sample.load.congestion_control.is_none())
                })
                .map(|sample| sample.rate),
        )
    };
    let mut lines = vec![
        line(
            say!(
                "congestion-control-line-rates",
                current = &trial.current,
                tried = &trial.tried,
                direction = direction.word()
            ),
            evidence.interface_at(end),
            median_of(&trial.current),
            median_of(&trial.tried),
            "bit/s",
        ),
        line(
            say!("congestion-control-line-gain"),
            evidence.interface_at(end),
            trial.gain.low,
            trial.gain.value,
            "share",
        ),
    ];
    if let Some(share) = retransmitted_share(evidence, direction, &samples) {
        lines.push(line(
            say!(
                "congestion-control-line-again",
                direction = direction.word()
            ),
            evidence.interface_at(end),
            (),
            share,
            "share",
        ));
    }
    lines.extend(rates_line(evidence, direction));
    Found {
        severity: Severity::Warning,
        confidence: 0.85,
        effect: (trial.gain.value / (1.0 + trial.gain.value.max(0.0))).clamp(0.0, 1.0),
        host: evidence.name(end).to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: say!(
            "congestion-control-because",
            tried = &trial.tried,
            current = &trial.current,
            gain = percent(trial.gain.value)
        ),
        remedies: remedies(evidence, end, trial),
        refused: Vec::new(),
    }
}

fn remedies(evidence: &Evidence, end: End, trial: &CongestionTrial) -> Vec<Remedy> {
    let facts = evidence.facts(end);
    let tried = &trial.tried;
    let sysctl = |name: &str| {
        facts
            .and_then(|facts| facts.sysctls.get(name))
            .and_then(Known::value)
    };
    let available =
        sysctl(AVAILABLE).is_some_and(|list| list.split_whitespace().any(|name| name == tried));
    // What the messages know a kernel by that needs no queueing discipline for it.
    let kernel = facts
        .map(|facts| facts.host.kernel.as_str())
        .filter(|kernel| tried.starts_with("bbr") && before_4_20(kernel))
        .unwrap_or("paces");
    let mut remedies = Vec::new();
    if let Some(tunnel) = evidence.tunnel(end) {
        let setting = Setting::RouteCongestion {
            interface: tunnel.name.clone(),
        };
        let (before, routes) = chosen_now(evidence, end, tunnel);
        let known = before.is_some();
        let mut remedy = remedy_of(
            evidence,
            say!(
                "congestion-control-remedy-route",
                tried = tried,
                place = evidence.interface_at(end)
            ),
            vec![(
                Change {
                    end,
                    setting,
                    value: json!(tried),
                },
                before.unwrap_or_default(),
            )],
            Goal::Goodput,
            say!(
                "congestion-control-risk-route",
                kernel = kernel,
                routes = routes,
                interface = shell_word(&tunnel.name)
            ),
        );
        if !known {
            remedy.undo.clear();
        }
        if !available {
            remedy.changes.clear();
            let module = format!("tcp_{tried}");
            let load = format!("modprobe {}", shell_word(&module));
            remedy.commands.insert(0, command(evidence, end, load));
        }
        remedies.push(remedy);
    }
    let default = Setting::Sysctl {
        name: DEFAULT.to_owned(),
    };
    let now = sysctl(DEFAULT).map_or(trial.current.as_str(), |text| text.trim());
    let shell = |value: &str| -> Vec<String> {
        default
            .shell(&json!(value))
            .into_iter()
            .map(|text| command(evidence, end, text))
            .collect()
    };
    remedies.push(Remedy {
        title: say!(
            "congestion-control-remedy-default",
            tried = tried,
            host = evidence.name(end)
        ),
        changes: Vec::new(),
        commands: shell(tried),
        goal: Goal::Goodput,
        persistence: default.persistence(&json!(tried)),
        risk: say!("congestion-control-risk-default", kernel = kernel),
        undo: shell(now).join("\n"),
    });
    remedies
}

/// The congestion control that the routes into a tunnel have now, for taking the change back; `None` where no single one
/// would. And what the messages know that by.
fn chosen_now(evidence: &Evidence, end: End, tunnel: &Tunnel) -> (Option<Value>, &'static str) {
    let chosen: BTreeSet<Option<&str>> = evidence
        .facts(end)
        .into_iter()
        .flat_map(|facts| &facts.routes)
        .filter(|route| route.inside && route.interface.value() == Some(&tunnel.name))
        .map(|route| route.congestion_control.as_deref())
        .collect();
    match chosen.first() {
        Some(one) if chosen.len() == 1 => (Some(json!(one)), "alike"),
        Some(_) => (None, "differ"),
        None if tunnel.peers.value().is_some_and(Vec::is_empty) => (Some(json!(null)), "alike"),
        // No peer has an address that a route was asked for.
        None => (None, "unknown"),
    }
}

/// TCP paces by itself since Linux 4.13, but well enough for BBR only since 4.20.
fn before_4_20(kernel: &str) -> bool {
    let mut parts = kernel
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (4, 20),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
