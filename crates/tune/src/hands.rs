//! What the driver of a tune needs of the two machines; a trait, so that its tests can do without machines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirespeed_doctor::End;
use wirespeed_facts::CountersDelta;
use wirespeed_measure::{CountedBy, Ends, Load, MeasureError, Sample};
use wirespeed_reach::{Machine, ReachError};
use wirespeed_settings::{Setting, Value};

use crate::operations::{Applied, Apply, Begin, Begun, Keep, Nothing, Revert, Undo};
use crate::{PutBack, Status, TuneError};

/// A change is made within milliseconds; the road to the machine may be full.
const CHANGE_WITHIN: Duration = Duration::from_secs(20);
/// After a switch, before the load: what was under way ends.
const SETTLE: Duration = Duration::from_millis(200);

/// The two machines and the loads between them.
pub(crate) trait Hands {
    /// Name of the machine, when changes can be made there.
    fn reachable(&self, end: End) -> Option<String>;
    fn begin(&self, end: End, trial_seconds: f64) -> Result<Vec<PutBack>, TuneError>;
    fn apply(&self, end: End, setting: &Setting, value: &Value) -> Result<Applied, TuneError>;
    fn revert(&self, end: End, setting: &Setting) -> Result<(), TuneError>;
    fn keep(&self, end: End, settings: Vec<Setting>, confirm_within: f64) -> Result<(), TuneError>;
    fn undo(&self, end: End, why: &str) -> Result<(), TuneError>;
    fn settle(&self) -> Result<(), TuneError>;
    fn sample(&self, load: &Load) -> Result<Sample, TuneError>;
    fn stopped(&self) -> bool;
}

impl Hands for Ends {
    fn reachable(&self, end: End) -> Option<String> {
        self.machine(end).map(|machine| machine.name().to_owned())
    }

    fn begin(&self, end: End, trial_seconds: f64) -> Result<Vec<PutBack>, TuneError> {
        let (interface, probe_address) = match end {
            End::Here => (Some(&self.interface), self.tunnel_address),
            End::Far => (self.far_interface.as_ref(), self.here_tunnel_address),
        };
        let request = Begin {
            interface: interface.unwrap_or(&self.interface).clone(),
            probe_address,
            trial_seconds,
        };
        let begun: Begun = self.ask(end, "tune.begin", &request)?;
        Ok(begun.recovered)
    }

    fn apply(&self, end: End, setting: &Setting, value: &Value) -> Result<Applied, TuneError> {
        let request = Apply {
            setting: setting.clone(),
            value: value.clone(),
        };
        self.ask(end, "tune.apply", &request)
    }

    fn revert(&self, end: End, setting: &Setting) -> Result<(), TuneError> {
        let request = Revert {
            setting: setting.clone(),
        };
        self.ask(end, "tune.revert", &request)
    }

    fn keep(&self, end: End, settings: Vec<Setting>, confirm_within: f64) -> Result<(), TuneError> {
        let request = Keep {
            settings,
            confirm_within,
        };
        self.ask(end, "tune.keep", &request)
    }

    fn undo(&self, end: End, why: &str) -> Result<(), TuneError> {
        let request = Undo {
            why: why.to_owned(),
            only_latest: true,
        };
        self.ask::<_, Vec<PutBack>>(end, "tune.undo", &request)
            .map(drop)
    }

    fn settle(&self) -> Result<(), TuneError> {
        if self.stop.sleep(SETTLE) {
            Ok(())
        } else {
            Err(TuneError::Stopped)
        }
    }

    fn sample(&self, load: &Load) -> Result<Sample, TuneError> {
        let once = || match Ends::sample(self, load) {
            Err(MeasureError::Stopped) => Err(TuneError::Stopped),
            other => other.map_err(TuneError::from),
        };
        // One failure may be chance; two in a row are not.
        let sample = match once() {
            Err(TuneError::Measure(_)) => {
                self.settle()?;
                once()
            }
            other => other,
        };
        match sample {
            Err(TuneError::Measure(MeasureError::NoConnection { .. })) => Ok(nothing_arrived(load)),
            other => other,
        }
    }

    fn stopped(&self) -> bool {
        self.stop.stopped()
    }
}

/// A load whose connection was refused or never answered is a figure like any other: a full table of connections, or a
/// change that cuts the tunnel, looks like this.
fn nothing_arrived(load: &Load) -> Sample {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Sample {
        load: load.clone(),
        started_at: now.unwrap_or_default().as_secs_f64(),
        ran: load.seconds,
        bytes: 0,
        rate: 0.0,
        counted_by: CountedBy::default(),
        retransmits: None,
        retransmits_with_warm_up: None,
        lost: None,
        dead_streams: load.streams,
        stalled: true,
        congestion_control: None,
        intervals: Vec::new(),
        loaded_rtt: None,
        windows: None,
        here: CountersDelta::default(),
        far: None,
    }
}

trait Asks {
    fn machine(&self, end: End) -> Option<&Machine>;
    fn ask<P: Serialize, R: DeserializeOwned>(
        &self,
        end: End,
        operation: &str,
        params: &P,
    ) -> Result<R, TuneError>;
}

impl Asks for Ends {
    fn machine(&self, end: End) -> Option<&Machine> {
        match end {
            End::Here => Some(&self.here),
            End::Far => self.far_machine(),
        }
    }

    fn ask<P: Serialize, R: DeserializeOwned>(
        &self,
        end: End,
        operation: &str,
        params: &P,
    ) -> Result<R, TuneError> {
        let machine = self.machine(end).ok_or(TuneError::NotBegun)?;
        Ok(machine.call(operation, params, CHANGE_WITHIN)?)
    }
}

/// Keeps what a tune left waiting, on one machine.
///
/// # Errors
/// When nothing waits there, or the machine does not answer.
pub fn confirm(machine: &Machine) -> Result<Status, ReachError> {
    let status: Status = machine.call("tune.confirm", &Nothing {}, CHANGE_WITHIN)?;
    Ok(status.said())
}

/// Puts everything back that a tune changed on one machine, confirmed or not; newest first.
///
/// # Errors
/// When a journal can't be read, or the machine does not answer.
pub fn undo(machine: &Machine) -> Result<Vec<PutBack>, ReachError> {
    let request = Undo {
        why: "asked by the user".to_owned(),
        only_latest: false,
    };
    machine.call("tune.undo", &request, CHANGE_WITHIN)
}

/// Where the tune of one machine is. Puts back what a killed one left behind.
///
/// # Errors
/// When a journal can't be read, or the machine does not answer.
pub fn status(machine: &Machine) -> Result<Status, ReachError> {
    let status: Status = machine.call("tune.status", &Nothing {}, CHANGE_WITHIN)?;
    Ok(status.said())
}
