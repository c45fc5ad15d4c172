//! A passive watch of both ends at the same time.

use std::time::{Duration, Instant};

use wirespeed_facts::{ConnectionsWanted, Facts, Scope};

use crate::operations::PASSIVE;
use crate::passive::{PassivePlan, SECONDS_AT_MOST};
use crate::sequence_probe::refused;
use crate::{Ends, MeasureError, PassiveWatch, Progress};

/// What a machine may take beyond the watch itself: a few readings, on a machine that is busy.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
const WHAT: &str = "what flows by itself";

impl Ends {
    /// Watches both ends (the far one where wirespeed runs there) for `seconds`, an hour at most. Sends nothing through
    /// the tunnel or beside it.
    ///
    /// # Errors
    /// When a machine does not answer, or [`Ends::stop`] was set.
    pub fn watch(
        &self,
        seconds: f64,
        progress: &dyn Progress,
    ) -> Result<PassiveWatch, MeasureError> {
        self.check_stop()?;
        let limit = Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_AT_MOST)) + ANSWER_WITHIN;
        let plan = |facts: &Facts, interface: &str| PassivePlan {
            scope: Scope {
                interface: Some(interface.to_owned()),
            },
            connections: through(facts, interface),
            seconds,
        };
        let far = match (self.far_machine(), &self.far_facts, &self.far_interface) {
            (Some(machine), Some(facts), Some(interface)) => {
                Some(machine.start(PASSIVE, &plan(facts, interface))?)
            }
            _ => None,
        };
        let here = self
            .here
            .start(PASSIVE, &plan(&self.here_facts, &self.interface))?;
        let begun = Instant::now();
        let (here, far) = std::thread::scope(|scope| {
            let waiting = scope.spawn(move || match far {
                Some(far) => self
                    .wait_for_both(here, far, limit)
                    .map(|(here, far)| (here, Some(far))),
                None => self.wait(here, limit).map(|here| (here, None)),
            });
            while !waiting.is_finished() {
                let gone = begun.elapsed().as_secs_f64();
                let done = (gone / seconds).clamp(0.0, 1.0);
                progress.step("watching", done, (seconds - gone).max(0.0));
                std::thread::sleep(TELL_EVERY);
            }
            waiting.join().unwrap_or(Err(MeasureError::Stopped))
        })
        .map_err(|error| refused(WHAT, error))?;
        self.still_there(&self.counters()?)?;
        Ok(PassiveWatch { here, far })
    }
}

/// The connections that go through a tunnel: from its own addresses, or to what its peers may have.
fn through(facts: &Facts, interface: &str) -> ConnectionsWanted {
    let links = facts.links.iter().filter(|link| link.name == interface);
    let addresses = links.flat_map(|link| &link.addresses);
    let tunnels = facts
        .tunnels
        .iter()
        .filter(|tunnel| tunnel.name == interface);
    let peers = tunnels.filter_map(|tunnel| tunnel.peers.value()).flatten();
    ConnectionsWanted {
        local: addresses
            .filter_map(|text| text.split('/').next()?.parse().ok())
            .collect(),
        remote: peers.flat_map(|peer| peer.allowed_ips.clone()).collect(),
        ports: Vec::new(),
    }
}
