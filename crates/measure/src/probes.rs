//! What echo requests tell without a load: round-trip times, sizes that pass, and who is heard after idling.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirespeed_reach::Machine;
use wirespeed_words::say;

use crate::echo::{EchoReport, EchoTrain};
use crate::echo_packet;
use crate::echo_watch::EchoWatch;
use crate::ladder::{self, Bounds};
use crate::operations::{ECHO, Number, WATCH_FINISH, WATCH_START};
use crate::{Direction, Ends, MeasureError, PathMtu, RttSummary, TunnelSweep, Via};

/// Seconds between the packets of a ladder: 1,500 bytes each make 4 Mbit/s.
const LADDER_INTERVAL: f64 = 0.003;
/// Seconds to wait for the last reply of a probe.
const LAST_REPLY: f64 = 1.0;
/// How long a watch may take to open or to answer.
const WATCH_WITHIN: Duration = Duration::from_secs(5);
/// What agent and line may take beyond the train itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Smallest sizes that every path must carry (RFC 791's reassembly size, RFC 8200's minimum MTU).
const SMALLEST_V4: u32 = 576;
const SMALLEST_V6: u32 = 1280;
/// The second try over an idle tunnel waits so long after its last packet, seconds. A handshake that got lost is tried anew
/// 5.33 s after the first packet at the latest (`REKEY_TIMEOUT` and its jitter), and this ends 8.0 s after it: what is left
/// is twice 1.3 s, and no longer round trip passes for an answer in the tries that follow.
const SECOND_HANDSHAKE: f64 = 6.2;
/// Ladders until the limit is exact: 32 steps each, so that three settle 32,000 bytes.
const LADDERS_AT_MOST: usize = 4;

/// Who was heard over an idle tunnel, in this order: (replies, requests).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdlePings {
    /// The far end asked first, before anything was sent from here.
    pub far_first: (u32, u32),
    /// Then the far end once more, until a second handshake would have got through; `None` = not asked.
    pub far_again: Option<(u32, u32)>,
    /// Then we asked.
    pub here_then: (u32, u32),
    /// Then the far end again.
    pub far_after: (u32, u32),
}

impl Ends {
    /// Round-trip times without load: `count` requests, `interval` seconds apart.
    ///
    /// # Errors
    /// When there is no address that way, or nothing could be sent. No reply at all is no error.
    pub fn idle_rtt(
        &self,
        via: Via,
        count: u32,
        interval: f64,
    ) -> Result<RttSummary, MeasureError> {
        let train = EchoTrain {
            interface: self.here_device(via),
            ..plain(self.address(via)?, count, interval, LAST_REPLY)
        };
        Ok(self.echo(&self.here, "round-trip time", &train)?.summary())
    }

    /// Does the far end answer inside the tunnel, within three seconds?
    ///
    /// # Errors
    /// [`MeasureError::TunnelSilent`] when it does not, with what is known of the reason.
    pub fn check_tunnel(&self) -> Result<(), MeasureError> {
        // The first may be lost to the handshake.
        if self.idle_rtt(Via::Tunnel, 8, 0.25)?.received > 0 {
            return Ok(());
        }
        let outside = match self.bare_address {
            Some(_) => Some(self.idle_rtt(Via::Bare, 4, 0.1)?.received > 0),
            None => None,
        };
        let (now, _) = self.snapshot()?;
        let peers = now
            .tunnels
            .iter()
            .filter(|tunnel| tunnel.name == self.interface)
            .filter_map(|tunnel| tunnel.peers.value());
        let peer = peers.flatten().find(|peer| peer.public_key == self.peer);
        let handshake = match peer.map(|peer| peer.handshake_age) {
            Some(Some(age)) => say!("measure-handshake-age", seconds = age.round()),
            Some(None) => say!("measure-handshake-never"),
            None => say!("measure-peer-gone"),
        };
        let endpoint = match (peer.and_then(|peer| peer.endpoint), outside) {
            (Some(endpoint), Some(true)) => {
                say!("measure-endpoint-answers", host = endpoint.ip().to_string())
            }
            (Some(endpoint), _) => {
                say!("measure-endpoint-silent", endpoint = endpoint.to_string())
            }
            (None, _) => say!("measure-endpoint-none"),
        };
        Err(MeasureError::TunnelSilent {
            machine: self.here.name().to_owned(),
            interface: self.interface.clone(),
            peer: self.peer.clone(),
            because: format!("{handshake}, {endpoint}"),
        })
    }

    /// The largest packet that passes outside the tunnel without being fragmented, to the byte.
    ///
    /// Where wirespeed runs at the far end, what counts is what arrives there: each direction by itself. Elsewhere
    /// it is what is answered, there and back.
    ///
    /// # Errors
    /// When that direction can't be probed, and why: nothing runs at the far end that could send, we are behind
    /// address translation, no request is answered at all.
    pub fn path_mtu(&self, direction: Direction) -> Result<PathMtu, MeasureError> {
        let way = self.way(Via::Bare, direction)?;
        let link_mtu = self.first_link_mtu(direction, way.to);
        let smallest = if way.to.is_ipv4() {
            SMALLEST_V4
        } else {
            SMALLEST_V6
        };
        let mut sizes = ladder::coarse(smallest.min(link_mtu), link_mtu);
        let mut bounds = Bounds {
            passed: None,
            failed: None,
        };
        let mut reported: Option<u32> = None;
        let mut watched = false;
        for _ in 0..LADDERS_AT_MOST {
            let rung = self.climb(&way, &sizes, &say!("measure-what-path-mtu"))?;
            watched = rung.watched;
            reported = [reported, rung.reported].into_iter().flatten().min();
            let now = ladder::judge(&rung.tries);
            bounds = Bounds {
                passed: now.passed.max(bounds.passed),
                failed: now.failed.or(bounds.failed),
            };
            let (Some(passed), Some(failed)) = (bounds.passed, bounds.failed) else {
                break;
            };
            sizes = ladder::between(passed, failed);
            if sizes.is_empty() {
                break;
            }
        }
        if bounds.passed.is_none() {
            return Err(unanswered(&say!("measure-what-path-mtu"), &way));
        }
        Ok(PathMtu {
            direction,
            largest_passed: bounds.passed,
            smallest_failed: bounds.failed,
            reported,
            silent_loss: bounds.failed.is_some() && reported.is_none(),
            link_mtu,
            method: if watched {
                "icmp-echo"
            } else {
                "icmp-echo-and-reply"
            }
            .to_owned(),
        })
    }

    /// Which sizes pass inside the tunnel, up to its MTU at the sender.
    ///
    /// # Errors
    /// As [`Ends::path_mtu`].
    pub fn tunnel_sweep(&self, direction: Direction) -> Result<TunnelSweep, MeasureError> {
        let way = self.way(Via::Tunnel, direction)?;
        let mtu = match direction {
            Direction::Upload => self.tunnel_mtu(),
            Direction::Download => self.far_tunnel_mtu(),
        };
        let sizes = ladder::tunnel(echo_packet::smallest(way.to) as u32, mtu);
        let rung = self.climb(&way, &sizes, &say!("measure-what-sizes"))?;
        let bounds = ladder::judge(&rung.tries);
        if bounds.passed.is_none() {
            return Err(unanswered(&say!("measure-what-sizes"), &way));
        }
        Ok(TunnelSweep {
            direction,
            largest_passed: bounds.passed,
            smallest_failed: bounds.failed,
        })
    }

    /// Who is heard over a tunnel that has been idle: the far end first, then we, then the far end again. Has to be
    /// the first thing sent through it.
    ///
    /// Where a `handshake_due` comes before anything passes, the first silence proves nothing: the reply takes two round
    /// trips then, and seconds more where the handshake is lost. So the far end asks a second time before we send.
    ///
    /// # Errors
    /// When wirespeed does not run at the far end, or an address inside the tunnel is not known.
    pub fn idle_return(&self, handshake_due: bool) -> Result<IdlePings, MeasureError> {
        let there = self.way(Via::Tunnel, Direction::Upload)?;
        let back = self.way(Via::Tunnel, Direction::Download)?;
        let ask = |way: &Way<'_>, wait: f64| {
            let train = plain(way.to, 3, 0.2, wait);
            // Refused by the kernel (no endpoint, no key) is not heard, too.
            match self.echo(way.sender, &say!("measure-what-idle"), &train) {
                Ok(report) => Ok((report.received(), report.echoes.len() as u32)),
                Err(MeasureError::ProbeFailed { .. }) => Ok((0, train.count)),
                Err(other) => Err(other),
            }
        };
        let far_first = ask(&back, 1.0)?;
        let far_again = (handshake_due && far_first.0 == 0)
            .then(|| ask(&back, SECOND_HANDSHAKE))
            .transpose()?;
        Ok(IdlePings {
            far_first,
            far_again,
            here_then: ask(&there, 1.0)?,
            far_after: ask(&back, 1.0)?,
        })
    }

    /// Sends a ladder, four rounds of it, and says of each packet whether it passed.
    fn climb(&self, way: &Way<'_>, sizes: &[u32], what: &str) -> Result<Rung, MeasureError> {
        let count = (sizes.len() * ladder::TRIES) as u32;
        let train = EchoTrain {
            sizes: sizes.to_vec(),
            dont_fragment: true,
            interface: way.device.clone(),
            ..plain(way.to, count, LADDER_INTERVAL, LAST_REPLY)
        };
        let seconds = f64::from(count) * LADDER_INTERVAL + LAST_REPLY + 30.0;
        let watch = EchoWatch {
            v4: way.to.is_ipv4(),
            token: train.token,
            seconds,
        };
        let watching = way.receiver.filter(|receiver| {
            // Without the watch, replies have to do.
            self.call::<_, ()>(receiver, WATCH_START, &watch, WATCH_WITHIN)
                .is_ok()
        });
        let report = self.echo(way.sender, what, &train);
        let arrived: Option<BTreeSet<u32>> = watching
            .map(|receiver| {
                self.call(
                    receiver,
                    WATCH_FINISH,
                    &Number {
                        number: train.token,
                    },
                    WATCH_WITHIN,
                )
            })
            .transpose()?;
        let report = report?;
        let passed = |number: usize, rtt: Option<f64>| {
            rtt.is_some()
                || arrived
                    .as_ref()
                    .is_some_and(|arrived| arrived.contains(&(number as u32)))
        };
        Ok(Rung {
            tries: report
                .echoes
                .iter()
                .enumerate()
                .map(|(number, echo)| (echo.size, passed(number, echo.rtt)))
                .collect(),
            reported: report.reported_mtu,
            watched: arrived.is_some(),
        })
    }

    fn echo(
        &self,
        machine: &Machine,
        what: &str,
        train: &EchoTrain,
    ) -> Result<EchoReport, MeasureError> {
        let lasts = f64::from(train.count) * train.interval + train.wait;
        let limit = Duration::from_secs_f64(lasts) + ANSWER_WITHIN;
        self.call(machine, ECHO, train, limit)
            .map_err(|error| match error {
                MeasureError::Reach(wirespeed_reach::ReachError::Operation {
                    machine,
                    message,
                    ..
                }) => MeasureError::ProbeFailed {
                    what: what.to_owned(),
                    machine,
                    because: message,
                },
                other => other,
            })
    }

    /// Who sends to which address, and who could watch it arrive.
    fn way(&self, via: Via, direction: Direction) -> Result<Way<'_>, MeasureError> {
        match direction {
            Direction::Upload => Ok(Way {
                sender: &self.here,
                to: self.address(via)?,
                device: self.here_device(via),
                receiver: self.far_machine(),
            }),
            Direction::Download => {
                let refused = |because: String| MeasureError::ProbeFailed {
                    what: say!("measure-what-download"),
                    machine: self.far_name(),
                    because,
                };
                let sender = self
                    .far_machine()
                    .ok_or_else(|| refused(say!("measure-far-not-there")))?;
                let to = match via {
                    Via::Bare => self.here_bare_address,
                    Via::Tunnel => self.here_tunnel_address,
                };
                let to = to.ok_or_else(|| {
                    refused(match (via, &self.never_outside, &self.translated_to) {
                        (Via::Bare, Some(why), _) => why.clone(),
                        (Via::Bare, None, Some(seen)) => {
                            say!("measure-translated", seen = seen)
                        }
                        (Via::Bare, None, None) => {
                            say!("measure-own-address-unknown")
                        }
                        (Via::Tunnel, ..) => {
                            say!("measure-no-address-of-family")
                        }
                    })
                })?;
                Ok(Way {
                    sender,
                    to,
                    device: self.far_device(via),
                    receiver: Some(&self.here),
                })
            }
        }
    }

    /// MTU of the link the sender's packets leave by.
    fn first_link_mtu(&self, direction: Direction, to: IpAddr) -> u32 {
        let facts = match direction {
            Direction::Upload => Some(&self.here_facts),
            Direction::Download => self.far_facts.as_ref(),
        };
        let by_route = facts.and_then(|facts| {
            let route = facts
                .routes
                .iter()
                .find(|route| route.to == to && !route.inside)?;
            let interface = route.interface.value()?;
            // The route's own MTU may be a path MTU the kernel has learned: that is what we are to find out.
            Some(facts.links.iter().find(|link| link.name == *interface)?.mtu)
        });
        // Not known: Ethernet's. A larger one is then not found out, a smaller one is reported by the kernel.
        by_route.unwrap_or(1500)
    }

    fn far_tunnel_mtu(&self) -> u32 {
        let far = self.far_facts.iter().flat_map(|facts| &facts.tunnels);
        far.into_iter()
            .find(|tunnel| Some(&tunnel.name) == self.far_interface.as_ref())
            .map_or_else(|| self.tunnel_mtu(), |tunnel| tunnel.mtu)
    }
}

fn unanswered(what: &str, way: &Way<'_>) -> MeasureError {
    MeasureError::ProbeFailed {
        what: what.to_owned(),
        machine: way.sender.name().to_owned(),
        because: say!("measure-no-echo", to = way.to.to_string()),
    }
}

struct Way<'a> {
    sender: &'a Machine,
    to: IpAddr,
    /// Interface the sender's packets have to leave by.
    device: Option<String>,
    receiver: Option<&'a Machine>,
}

struct Rung {
    tries: Vec<(u32, bool)>,
    reported: Option<u32>,
    /// By the receiver, and not by replies alone.
    watched: bool,
}

/// A train of small packets (as `ping` sends: 56 bytes of payload).
fn plain(to: IpAddr, count: u32, interval: f64, wait: f64) -> EchoTrain {
    EchoTrain {
        to,
        sizes: vec![if to.is_ipv4() { 84 } else { 104 }],
        count,
        interval,
        wait,
        dont_fragment: false,
        source: None,
        interface: None,
        token: rand::random(),
    }
}
