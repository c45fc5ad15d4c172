//! Collects the evidence: facts, probes, loads, and what checks ask for to tell one cause from another.
//!
//! The order matters. Who is heard over the idle tunnel comes first, because anything sent through it changes the
//! answer; sizes come before loads, because they are cheap, and datagrams are counted meanwhile at a rate that
//! disturbs nobody; what checks ask for comes last, because only the loads can tell whether it is worth its time. What fails becomes a line of `not_measured`; only a machine that is gone or a stop
//! ends the whole.

mod asked;
mod loads;

use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use wirespeed_facts::{Counters, CountersDelta, Facts, Known};
use wirespeed_measure::{
    Direction, Ends, FarEnd, MeasureError, NotMeasured, Progress, SequenceProbe, Via,
};
use wirespeed_reach::ReachError;
use wirespeed_words::say;

use crate::causes::handshake_due;
use crate::probe::{Datagrams, Probe};
use crate::view::DIRECTIONS;
use crate::{Evidence, FarKind, IdleReturn};

/// Seed of every bootstrap, so that the same samples always give the same interval.
const SEED: u64 = 1;
/// What the probes take on a tunnel in which nothing is lost.
const PROBES_ABOUT: Duration = Duration::from_secs(6);
/// How long datagrams are counted beside the other probes, seconds.
const COUNTED_FOR: f64 = 3.0;

/// The share of the whole after which the loads of the comparisons are over.
const LOADS_UNTIL: f64 = 0.8;

/// How far to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Under 45 s on a healthy tunnel with a round trip of up to 50 ms, with shorter samples and so wider intervals.
    pub quick: bool,
    /// What the user expects of the line, bit/s.
    pub expect: Option<f64>,
    /// Search for the highest rate that stays stable in each direction, whatever the rest shows.
    pub sweep: bool,
    /// Directions to load and probe.
    pub directions: Vec<Direction>,
    /// Time for everything; `None` = 43 s when quick, else 100 s, of which a healthy tunnel takes under 60, and what long
    /// round trips add to 20 loads: 11 s at 80 ms, 31 s when quick. What tells causes apart may take longer: another
    /// congestion control 16 s (as much more as the loads are longer), a search for a rate 24 s, the rest 12 s in all.
    pub budget: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quick: false,
            expect: None,
            sweep: false,
            directions: DIRECTIONS.to_vec(),
            budget: None,
        }
    }
}

/// Collects everything the checks look at. Changes nothing on any machine.
///
/// [`Ends::stop`] ends it within a second or two.
///
/// # Errors
/// When a machine is gone or [`Ends::stop`] was set; whatever else fails is in [`Evidence::not_measured`].
pub fn investigate(
    ends: &Ends,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Evidence, MeasureError> {
    let mut driver = Driver::new(ends, options, progress)?;
    driver.probe()?;
    driver.load()?;
    driver.soak()?;
    driver.ask()?;
    progress.step(&say!("doctor-step-done"), 1.0, 0.0);
    Ok(driver.evidence)
}

struct Driver<'a> {
    ends: &'a Ends,
    options: &'a Options,
    progress: &'a dyn Progress,
    begun: Instant,
    budget: Duration,
    evidence: Evidence,
}

impl<'a> Driver<'a> {
    fn new(
        ends: &'a Ends,
        options: &'a Options,
        progress: &'a dyn Progress,
    ) -> Result<Self, MeasureError> {
        let begun = Instant::now();
        progress.step(&say!("doctor-step-facts"), 0.0, 0.0);
        let (here, far) = ends.snapshot()?;
        let budget = options
            .budget
            .unwrap_or(Duration::from_secs(if options.quick { 43 } else { 100 }));
        let evidence = blank(ends, here, far, options.expect);
        Ok(Self {
            ends,
            options,
            progress,
            begun,
            budget,
            evidence,
        })
    }

    fn probe(&mut self) -> Result<(), MeasureError> {
        let ends = self.ends;
        let before = ends.counters()?;
        self.step(&say!("doctor-step-idle"), 0.0);
        let pings = ends.idle_return(handshake_due(&self.evidence));
        let order = pings.map(|pings| IdleReturn {
            far_first: pings.far_first,
            far_again: pings.far_again,
            here_then: pings.here_then,
            far_after: pings.far_after,
            translated_to: ends.translated_to.clone(),
            carried_before: carried_before(ends, &before.0),
        });
        self.evidence.idle_return = self.keep(&say!("doctor-probe-idle"), order)?;
        let gentle: Vec<Datagrams> = match self.evidence.far_kind {
            FarKind::Wirespeed => {
                let each = self.options.directions.iter();
                each.map(|direction| Datagrams::gentle(*direction, COUNTED_FOR))
                    .collect()
            }
            FarKind::Iperf3 | FarKind::Nothing => Vec::new(),
        };
        let counted = thread::scope(|scope| {
            let counting: Vec<ScopedJoinHandle<_>> = gentle
                .iter()
                .map(|datagrams| scope.spawn(|| count(ends, datagrams)))
                .collect();
            let rest = self.times_and_sizes();
            let counted = counting.into_iter().map(ScopedJoinHandle::join).collect();
            rest.map(|()| counted)
        })?;
        self.keep_counted(&gentle, counted)?;
        let after = ends.counters()?;
        let moved: (CountersDelta, Option<CountersDelta>) = (
            after.0.delta(&before.0),
            after
                .1
                .zip(before.1)
                .map(|(after, before)| after.delta(&before)),
        );
        self.evidence.probing_here = Some(moved.0);
        self.evidence.probing_far = moved.1;
        Ok(())
    }

    fn times_and_sizes(&mut self) -> Result<(), MeasureError> {
        let ends = self.ends;
        self.step(&say!("doctor-step-rtt"), 0.3);
        // The interval keeps a train within a second; the median of ten is what counts.
        let outside = ends.idle_rtt(Via::Bare, 10, 0.05);
        self.evidence.idle_rtt_bare = self.keep(&say!("doctor-probe-rtt-bare"), outside)?;
        let inside = ends.idle_rtt(Via::Tunnel, 10, 0.05);
        self.evidence.idle_rtt_tunnel = self.keep(&say!("doctor-probe-rtt-tunnel"), inside)?;
        for direction in self.options.directions.clone() {
            let what = say!("doctor-probe-path-mtu", direction = direction.word());
            self.step(&what, 0.5);
            let found = ends.path_mtu(direction);
            let probe = self.keep(&what, found)?;
            self.evidence.path_mtu.extend(probe.value().cloned());
            let found = ends.tunnel_sweep(direction);
            let what = say!("doctor-probe-sizes", direction = direction.word());
            let sweep = self.keep(&what, found)?;
            self.evidence.tunnel_sweep.extend(sweep.value().cloned());
        }
        Ok(())
    }

    fn keep_counted(
        &mut self,
        asked: &[Datagrams],
        counted: Vec<thread::Result<Result<SequenceProbe, MeasureError>>>,
    ) -> Result<(), MeasureError> {
        for (datagrams, counted) in asked.iter().zip(counted) {
            let counted = match counted {
                Ok(counted) => counted,
                Err(panicked) => std::panic::resume_unwind(panicked),
            };
            let counted = self.keep(&Probe::Sequence(*datagrams).what(), counted)?;
            self.evidence.sequences.extend(counted.value().cloned());
        }
        Ok(())
    }

    /// A result, or a line of `not_measured` and the reason in its place.
    fn keep<T>(
        &mut self,
        what: &str,
        result: Result<T, MeasureError>,
    ) -> Result<Known<T>, MeasureError> {
        match result {
            Ok(value) => Ok(Known::Value(value)),
            Err(error) if is_final(&error) => Err(error),
            Err(error) => {
                self.not_measured(what, error.said());
                Ok(Known::because(error.said()))
            }
        }
    }

    fn not_measured(&mut self, what: &str, because: String) {
        self.evidence.not_measured.push(NotMeasured {
            what: what.to_owned(),
            because,
        });
    }

    /// Reports a step of the probes; `done` is the share of the probes.
    fn step(&self, what: &str, done: f64) {
        let probes = PROBES_ABOUT.as_secs_f64();
        let whole = self.budget.as_secs_f64().max(probes);
        let usual = if self.options.quick { 28.0 } else { 50.0 };
        let longer = self.longer() * self.options.directions.len() as u32;
        let loads = usual + longer.as_secs_f64();
        self.progress
            .step(what, done * probes / whole, loads + probes * (1.0 - done));
    }
}

fn count(ends: &Ends, datagrams: &Datagrams) -> Result<SequenceProbe, MeasureError> {
    let Datagrams {
        via,
        direction,
        rate,
        payload,
        seconds,
    } = *datagrams;
    ends.sequence_probe(via, direction, rate, payload, seconds, None)
}

/// Evidence of which nothing but the facts is known yet.
pub(crate) fn blank(ends: &Ends, here: Facts, far: Option<Facts>, expect: Option<f64>) -> Evidence {
    let pending = || Known::because(say!("doctor-not-measured"));
    Evidence {
        interface: ends.interface.clone(),
        far_interface: ends.far_interface.clone(),
        peer: Some(ends.peer.clone()),
        far_kind: match &ends.far {
            FarEnd::Wirespeed(_) => FarKind::Wirespeed,
            FarEnd::Iperf3 { .. } => FarKind::Iperf3,
            FarEnd::Nothing => FarKind::Nothing,
        },
        here_name: ends.here.name().to_owned(),
        far_name: ends.far_name(),
        here,
        far,
        idle_return: Known::because(say!("doctor-not-measured")),
        idle_rtt_bare: pending(),
        idle_rtt_tunnel: pending(),
        path_mtu: Vec::new(),
        tunnel_sweep: Vec::new(),
        comparisons: Vec::new(),
        congestion_trials: Vec::new(),
        soaks: Vec::new(),
        sequences: Vec::new(),
        segmentation: Vec::new(),
        sweeps: Vec::new(),
        passive: None,
        asked: Vec::new(),
        no_time: Vec::new(),
        expected_rate: expect,
        not_measured: Vec::new(),
        probing_here: None,
        probing_far: None,
    }
}

/// Bytes to and from the peer since the tunnel was looked up: in a run over many hops, or one that tries remedies, also
/// those of its own loads.
fn carried_before(ends: &Ends, now: &Counters) -> u64 {
    let tunnels = ends.here_facts.tunnels.iter();
    let then = tunnels
        .filter(|tunnel| tunnel.name == ends.interface)
        .filter_map(|tunnel| tunnel.peers.value())
        .flatten()
        .find(|peer| peer.public_key == ends.peer);
    let (Some(then), Some(now)) = (then, now.peers.get(&ends.peer)) else {
        return 0;
    };
    let sent = now.tx_bytes.saturating_sub(then.tx_bytes);
    sent.saturating_add(now.rx_bytes.saturating_sub(then.rx_bytes))
}

/// After this nothing else can be measured.
fn is_final(error: &MeasureError) -> bool {
    matches!(
        error,
        MeasureError::Stopped
            | MeasureError::Reach(
                ReachError::Died { .. }
                    | ReachError::Silent { .. }
                    | ReachError::Rubbish { .. }
                    | ReachError::NotStarted { .. }
            )
    )
}

/// One part of the whole: its own 0 to 1 is a share of the whole's.
struct Part<'a> {
    whole: &'a dyn Progress,
    from: f64,
    share: f64,
    /// Seconds that come after this part.
    more: f64,
}

impl Progress for Part<'_> {
    fn step(&self, what: &str, done: f64, seconds_left: f64) {
        self.whole.step(
            what,
            self.from + self.share * done.clamp(0.0, 1.0),
            seconds_left + self.more,
        );
    }
}
