//! Numbered datagrams between the ends: loss, order and duplicates of the road or of the tunnel.

use std::net::SocketAddr;
use std::time::Duration;

use wirespeed_reach::{Machine, ReachError};
use wirespeed_words::say;

use crate::datagram_way::{Listen, Origin};
use crate::operations::{DATAGRAMS_LISTEN, SEQUENCE_RECEIVE, SEQUENCE_SEND};
use crate::sequence::{Arrived, Sent, SequenceEnd};
use crate::{Direction, Ends, MeasureError, SequenceProbe, Via};

/// How long the far end may take to open a socket.
const LISTEN_WITHIN: Duration = Duration::from_secs(5);
/// What ends and line may take beyond the probe itself: knocking, stragglers, a full path.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

impl Ends {
    /// Sends numbered UDP datagrams of `payload` bytes at `rate` bit/s (of payload) for `seconds` (60 at most), paced in
    /// batches of a millisecond, and says how they arrived. The far end listens on `port`, or on a free one from 5201 on;
    /// we open the way, so that a download works behind address translation, too.
    ///
    /// # Errors
    /// When wirespeed does not run at the far end, there is no address that way, the port is taken there, no datagram
    /// gets through at all (a firewall), or the sender's system refuses to send.
    pub fn sequence_probe(
        &self,
        via: Via,
        direction: Direction,
        rate: f64,
        payload: u32,
        seconds: f64,
        port: Option<u16>,
    ) -> Result<SequenceProbe, MeasureError> {
        self.sequence(via, direction, (rate, payload, seconds), port)
            .map_err(|error| self.or_gone(error))
    }

    fn sequence(
        &self,
        via: Via,
        direction: Direction,
        (rate, payload, seconds): (f64, u32, f64),
        port: Option<u16>,
    ) -> Result<SequenceProbe, MeasureError> {
        let way = self.datagram_way(&what(), via, direction, port)?;
        let end = |origin: &Origin| SequenceEnd {
            token: way.token,
            origin: origin.clone(),
            payload,
            rate,
            seconds,
        };
        let limit = Duration::from_secs_f64(seconds.clamp(0.0, 600.0)) + ANSWER_WITHIN;
        let receiving = way.receiver.start(SEQUENCE_RECEIVE, &end(&way.receives))?;
        let sending = way.sender.start(SEQUENCE_SEND, &end(&way.sends))?;
        let (sent, arrived): (Sent, Arrived) = self
            .wait_for_both(sending, receiving, limit)
            .map_err(|error| refused(&what(), error))?;
        if !sent.heard || !arrived.heard {
            return Err(self.unheard(&what(), &way));
        }
        // What was lost after the last arrival: only the sender knows of it.
        let missing_at_the_end = sent.datagrams.saturating_sub(arrived.next);
        Ok(SequenceProbe {
            via,
            direction,
            payload,
            offered: rate_of(sent.datagrams, payload, sent.seconds),
            arrived: rate_of(arrived.received, payload, arrived.seconds.max(sent.seconds)),
            port: way.port,
            seconds: sent.seconds,
            sent: sent.datagrams,
            received: arrived.received,
            duplicates: arrived.duplicates,
            reordered: arrived.reordered,
            reorder_extent: arrived.extent,
            longest_gap: arrived.longest_gap.max(missing_at_the_end),
            gaps: arrived
                .gaps
                .saturating_add(u64::from(missing_at_the_end > 0)),
            send_refused: sent.refused,
            receiver_dropped: arrived.dropped,
        })
    }

    /// Opens the far end's socket, and says who sends and who receives.
    pub(crate) fn datagram_way(
        &self,
        what: &str,
        via: Via,
        direction: Direction,
        port: Option<u16>,
    ) -> Result<DatagramWay<'_>, MeasureError> {
        self.check_stop()?;
        let far = self
            .far_machine()
            .ok_or_else(|| MeasureError::ProbeFailed {
                what: what.to_owned(),
                machine: self.here.name().to_owned(),
                because: say!("measure-far-needed"),
            })?;
        let address = self.address(via)?;
        let token = rand::random();
        let listen = Listen {
            token,
            to: address,
            own: self.far_has(address),
            port,
            device: self.far_device(via),
        };
        let port: u16 = self
            .call(far, DATAGRAMS_LISTEN, &listen, LISTEN_WITHIN)
            .map_err(|error| refused(what, error))?;
        let calling = Origin::Calling {
            to: SocketAddr::new(address, port),
            device: self.here_device(via),
        };
        let (here, there) = ((&self.here, calling), (far, Origin::Listening));
        let ((sender, sends), (receiver, receives)) = match direction {
            Direction::Upload => (here, there),
            Direction::Download => (there, here),
        };
        Ok(DatagramWay {
            token,
            port,
            to: SocketAddr::new(address, port),
            sender,
            sends,
            receiver,
            receives,
        })
    }

    pub(crate) fn unheard(&self, what: &str, way: &DatagramWay<'_>) -> MeasureError {
        MeasureError::ProbeFailed {
            what: what.to_owned(),
            machine: self.here.name().to_owned(),
            because: say!("measure-unheard", to = way.to.to_string()),
        }
    }
}

/// Two ends that are about to exchange datagrams.
pub(crate) struct DatagramWay<'a> {
    pub(crate) token: u64,
    pub(crate) port: u16,
    /// The listener.
    to: SocketAddr,
    pub(crate) sender: &'a Machine,
    pub(crate) sends: Origin,
    pub(crate) receiver: &'a Machine,
    pub(crate) receives: Origin,
}

/// An operation's words as a probe's failure.
pub(crate) fn refused(what: &str, error: MeasureError) -> MeasureError {
    match error {
        MeasureError::Reach(ReachError::Operation {
            machine, message, ..
        }) => MeasureError::ProbeFailed {
            what: what.to_owned(),
            machine,
            because: message,
        },
        other => other,
    }
}

fn rate_of(datagrams: u64, payload: u32, seconds: f64) -> f64 {
    // Shorter than any clock tells: there is no rate of it.
    if seconds > 1e-6 {
        datagrams as f64 * f64::from(payload) * 8.0 / seconds
    } else {
        0.0
    }
}

/// What is measured, in words.
fn what() -> String {
    say!("measure-what-order")
}
