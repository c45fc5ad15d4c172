//! Sending what the protocol has of its own accord: handshakes, keepalives, packets that waited for a session.
//!
//! Whoever finds something waiting sends it, before anything newer of the same peer. Packets that waited go out under the
//! lock, so that two threads that fetch at once keep their order; and a thread that finds the queue empty
//! while another still sends from it waits for that one. Handshake messages have no order to keep
//! and are sent after the lock is let go: a flood of them delays nobody's data.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed_protocol::{Transmit, Tunnel, wire};

use crate::lock::Locked;
use crate::ports::WorkerPorts;
use crate::statistics::{Loss, WorkerStatistics};
use crate::sticky::Sticky;
use crate::udp::{LocalAddress, blames_source};

/// Handshake messages whose way is remembered for the answer.
const MAX_CAUSES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    sending: AtomicBool,
    causes: Mutex<VecDeque<Cause>>,
}

/// A handshake message that came in.
#[derive(Clone, Copy, Debug)]
struct Cause {
    source: SocketAddr,
    local: LocalAddress,
}

impl Outbox {
    /// Whether something older than what is sealed now is still to be sent. (In this order: who takes out the last one
    /// says first that it sends.)
    pub(crate) fn waits(&self, tunnel: &Tunnel) -> bool {
        tunnel.transmits_waiting() || self.sending.load(Ordering::Acquire)
    }

    /// A message of the handshake is about to be worked on: its answer goes back by the way it came.
    pub(crate) fn expect_answer(&self, source: SocketAddr, local: LocalAddress) {
        let mut causes = self.causes.locked();
        if causes.len() >= MAX_CAUSES {
            causes.pop_front();
        }
        causes.push_back(Cause { source, local });
    }

    /// Sends all that waits. Without sockets it is lost, as it would be on the road.
    pub(crate) fn send(
        &self,
        tunnel: &Tunnel,
        sticky: &Sticky,
        ports: Option<&WorkerPorts>,
        statistics: &WorkerStatistics,
    ) {
        let mut unordered = Vec::new();
        {
            let causes = self.causes.locked();
            self.sending.store(true, Ordering::Release);
            while let Some(transmit) = tunnel.poll_transmit() {
                if wire::kind(&transmit.bytes) == Some(wire::Kind::Data) {
                    send_one(&transmit, None, sticky, ports, statistics);
                } else {
                    let way = way_back(&causes, &transmit, sticky);
                    unordered.push((transmit, way));
                }
            }
            self.sending.store(false, Ordering::Release);
        }
        for (transmit, way) in unordered {
            send_one(&transmit, way, sticky, ports, statistics);
        }
    }
}

/// The way an answer takes. That it is an answer also says that its peer was heard there.
fn way_back(
    causes: &VecDeque<Cause>,
    transmit: &Transmit,
    sticky: &Sticky,
) -> Option<LocalAddress> {
    let cause = causes
        .iter()
        .rev()
        .find(|cause| cause.source == transmit.destination)?;
    if let Some(peer) = transmit.peer
        && wire::kind(&transmit.bytes) == Some(wire::Kind::Response)
    {
        sticky.learn(peer, transmit.destination, cause.local);
    }
    transmit.peer.is_none().then_some(cause.local)
}

fn send_one(
    transmit: &Transmit,
    way: Option<LocalAddress>,
    sticky: &Sticky,
    ports: Option<&WorkerPorts>,
    statistics: &WorkerStatistics,
) {
    let Some(ports) = ports else {
        statistics.lost(Loss::NoSocket, 1);
        return;
    };
    let from = way.or_else(|| sticky.source(transmit.peer?, transmit.destination));
    let send = |from| {
        statistics.sent.system_calls(1);
        ports.listening.send_one(
            &transmit.bytes,
            transmit.traffic_class,
            transmit.destination,
            from,
        )
    };
    let result = send(from).or_else(|error| {
        if from.is_some() && blames_source(&error) {
            if let Some(peer) = transmit.peer {
                sticky.forget(peer);
            }
            return send(None);
        }
        Err(error)
    });
    match result {
        Ok(()) => statistics.sent.datagrams(1, transmit.bytes.len()),
        Err(error) => {
            log::debug!("sending to {}: {error}", transmit.destination);
            statistics.lost(Loss::SendFailed, 1);
        }
    }
}
