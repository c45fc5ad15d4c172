//! `bufferbloat`: echo requests wait behind the load's own queue.

use serde_json::json;
use wirespeed_facts::Known;
use wirespeed_measure::{Direction, RttSummary, Sample, Via};
use wirespeed_settings::Setting;

use crate::finding::{Check, Found, Outcome, line, milliseconds, rate, rates_line, remedy_of};
use crate::view::{DIRECTIONS, FEWEST_SAMPLES, median, sender, word};
use crate::{Change, Evidence, Goal, Remedy, Severity};

pub(super) const CODE: &str = "bufferbloat";

pub(super) const CHECK: Check = Check {
    code: CODE,
    title: "A deep queue fills up while the tunnel is loaded",
    run,
};

/// Less added delay than this is nobody's trouble, seconds.
const TOLERATED: f64 = 0.060;
/// On long paths: this many times the idle RTT.
const TOLERATED_TIMES_IDLE: f64 = 1.5;
/// Share of the measured rate a shaper is set to, so that the queue builds where it is short.
const SHAPED_SHARE: f64 = 0.92;
/// IPv4 and TCP headers with timestamps, in bytes of each packet.
const HEADERS: f64 = 52.0;
/// Replies a sample needs before its median RTT says anything.
const FEWEST_REPLIES: u32 = 3;

fn run(evidence: &Evidence) -> Outcome {
    if !evidence.loaded() {
        return Outcome::unknown("no load ran through the tunnel");
    }
    if let Known::Unknown(because) = &evidence.idle_rtt_tunnel {
        return Outcome::unknown(format!(
            "the idle RTT through the tunnel is not known: {because}"
        ));
    }
    let mut outcome = Outcome::default();
    for direction in DIRECTIONS {
        let samples = evidence.samples(direction, Via::Tunnel);
        if !samples.is_empty() && !evidence.stalled(direction) && loaded(&samples).is_none() {
            outcome.not_known.push(format!(
                "{}: too few echo replies while the tunnel was loaded",
                word(direction)
            ));
        }
        outcome
            .found
            .extend(bloat(evidence, direction).map(|bloat| found(evidence, &bloat)));
    }
    outcome
}

/// RTT grows under load by more than anybody should bear.
pub(super) struct Bloat {
    direction: Direction,
    idle: f64,
    loaded: f64,
}

/// Does the RTT through the tunnel swell while this direction is loaded?
pub(super) fn bloat(evidence: &Evidence, direction: Direction) -> Option<Bloat> {
    swollen(evidence, direction, Via::Tunnel, &evidence.idle_rtt_tunnel)
}

/// Does the road itself, outside the tunnel, show the same?
pub(super) fn on_the_road(evidence: &Evidence, direction: Direction) -> bool {
    swollen(evidence, direction, Via::Bare, &evidence.idle_rtt_bare).is_some()
}

fn swollen(
    evidence: &Evidence,
    direction: Direction,
    via: Via,
    idle: &Known<RttSummary>,
) -> Option<Bloat> {
    let idle = idle.value()?.median?;
    let loaded = loaded(&evidence.samples(direction, via))?;
    let added = loaded - idle;
    (added >= TOLERATED.max(TOLERATED_TIMES_IDLE * idle)).then_some(Bloat {
        direction,
        idle,
        loaded,
    })
}

/// Median over the samples of their median loaded RTT.
fn loaded(samples: &[&Sample]) -> Option<f64> {
    let medians: Vec<f64> = samples
        .iter()
        .filter_map(|sample| {
            sample
                .loaded_rtt
                .as_ref()
                .filter(|rtt| rtt.received >= FEWEST_REPLIES)?
                .median
        })
        .collect();
    if medians.len() < FEWEST_SAMPLES {
        return None;
    }
    median(medians)
}

fn found(evidence: &Evidence, bloat: &Bloat) -> Found {
    let direction = bloat.direction;
    let way = word(direction);
    let on_the_road = on_the_road(evidence, direction);
    let mut lines = vec![line(
        format!("RTT through the tunnel, idle and loaded, {way}"),
        evidence.interface_at(crate::End::Here),
        bloat.idle,
        bloat.loaded,
        "s",
    )];
    let bare_idle = evidence.idle_rtt_bare.value().and_then(|rtt| rtt.median);
    if let Some(bare) = loaded(&evidence.samples(direction, Via::Bare)) {
        lines.push(line(
            format!("RTT outside the tunnel, idle and loaded, {way}"),
            evidence.name(crate::End::Here),
            bare_idle,
            bare,
            "s",
        ));
    }
    lines.extend(rates_line(evidence, direction));
    let where_it_is = if on_the_road {
        "the queue is the road's: it fills without the tunnel too"
    } else {
        "it fills only through the tunnel"
    };
    Found {
        severity: Severity::Warning,
        confidence: if on_the_road { 0.9 } else { 0.7 },
        effect: (1.0 - bloat.idle / bloat.loaded.max(f64::EPSILON)).clamp(0.0, 1.0),
        host: evidence.name(sender(direction)).to_owned(),
        direction: Some(direction),
        evidence: lines,
        because: format!(
            "While {} sends, the RTT grows from {} to {}; {where_it_is}.",
            evidence.name(sender(direction)),
            milliseconds(bloat.idle),
            milliseconds(bloat.loaded)
        ),
        remedies: shaper(evidence, direction).into_iter().collect(),
        refused: Vec::new(),
    }
}

/// A limit a little under what the tunnel carried, at the sender, where the queue can be kept short.
fn shaper(evidence: &Evidence, direction: Direction) -> Option<Remedy> {
    let end = sender(direction);
    let tunnel = evidence.tunnel(end)?;
    let goodput = evidence.comparison(direction)?.tunnel;
    let packet = f64::from(tunnel.mtu.max(576));
    // The limit counts inner IP packets, the measurement their payload.
    let limit = (goodput * packet / (packet - HEADERS) * SHAPED_SHARE / 1e4).round() * 1e4;
    if limit < 1e5 {
        return None;
    }
    let setting = Setting::EgressShaper {
        interface: tunnel.name.clone(),
    };
    Some(remedy_of(
        evidence,
        format!(
            "Limit what leaves by {} to {}",
            evidence.interface_at(end),
            rate(limit)
        ),
        vec![(
            Change {
                end,
                setting,
                value: json!(limit as u64),
            },
            json!(null),
        )],
        Goal::LoadedRtt,
        format!(
            "caps the tunnel's peak at {}; wrong when the road's rate changes",
            rate(limit)
        ),
    ))
}
