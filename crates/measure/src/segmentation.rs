//! The same datagrams one by one and as trains that the kernel or the card cuts up (`UDP_SEGMENT`, udp(7)).
//!
//! WireGuard hands trains to the way out wherever it can. A card or driver that cuts them up wrongly (headers, lengths,
//! checksums) loses or mangles what goes in trains, and nothing else.

use std::collections::BTreeSet;
use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use serde::{Deserialize, Serialize};

use crate::datagram::{self, HEADER, Kind};
use crate::datagram_way::{After, Listeners, Origin, PAYLOAD_AT_MOST, Way};
use crate::sequence::{is_passing, say_end};

/// One end of a segmentation probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SegmentationEnd {
    pub(crate) token: u64,
    pub(crate) origin: Origin,
    /// UDP payload of a datagram, bytes; the last of a train has half of it.
    pub(crate) payload: u16,
    pub(crate) per_train: u32,
    /// Each sends a train, and as many one by one.
    pub(crate) rounds: u32,
    /// Seconds from one train to the next.
    pub(crate) every: f64,
}

/// What was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainsSent {
    /// The other end was heard; else nothing was sent.
    pub(crate) heard: bool,
    pub(crate) plain: u64,
    pub(crate) in_trains: u64,
    /// The system's answer to a train it refused.
    pub(crate) refused: Option<String>,
}

/// What arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainsArrived {
    /// The other end was heard.
    pub(crate) heard: bool,
    pub(crate) plain: u64,
    pub(crate) in_trains: u64,
    /// Of trains, with other content or another length.
    pub(crate) mangled: u64,
}

impl SegmentationEnd {
    fn check(&self) -> Result<(), String> {
        let train = usize::from(self.payload) * self.per_train as usize;
        let sensible = (2 * HEADER..=PAYLOAD_AT_MOST).contains(&usize::from(self.payload))
            && (1..=64).contains(&self.per_train)
            && train <= PAYLOAD_AT_MOST
            && (1..=1_000).contains(&self.rounds)
            && (0.0..=1.0).contains(&self.every);
        if sensible {
            Ok(())
        } else {
            Err(
                "a train has up to 64 datagrams and 65507 bytes, and there are up to 1000"
                    .to_owned(),
            )
        }
    }

    fn length(&self, number: u64) -> usize {
        let payload = usize::from(self.payload);
        if number % u64::from(self.per_train) == u64::from(self.per_train) - 1 {
            payload / 2
        } else {
            payload
        }
    }

    fn datagrams(&self, round: u32, kind: Kind) -> Vec<Vec<u8>> {
        let first = u64::from(round) * u64::from(self.per_train);
        (first..first + u64::from(self.per_train))
            .map(|number| {
                let mut bytes = vec![0; self.length(number)];
                datagram::write(&mut bytes, self.token, kind, number);
                datagram::fill(&mut bytes, self.token, number);
                bytes
            })
            .collect()
    }
}

/// Sends them, once the other end is heard.
pub(crate) fn send(
    listeners: &Listeners,
    end: &SegmentationEnd,
    keep_going: &dyn Fn() -> bool,
) -> Result<TrainsSent, String> {
    end.check()?;
    let way = Way::new(listeners, end.token, &end.origin)?;
    let mut sent = TrainsSent {
        heard: way.ready_to_send(keep_going)?,
        ..TrainsSent::default()
    };
    if !sent.heard {
        return Ok(sent);
    }
    // A kernel that does not know trains (before 4.18) would send one as a single, fragmented datagram.
    sent.refused = setsockopt(&way.socket, sockopt::UdpGsoSegment, &0)
        .err()
        .map(|error| {
            format!(
                "this kernel does not cut up trains of datagrams: {}",
                error.desc()
            )
        });
    let pause = Duration::from_secs_f64(end.every / 2.0);
    for round in 0..end.rounds {
        if !keep_going() {
            break;
        }
        for bytes in end.datagrams(round, Kind::Data) {
            match way.socket.send(&bytes) {
                Ok(_) => sent.plain += 1,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(format!("the system refused a datagram: {error}")),
            }
        }
        std::thread::sleep(pause);
        if sent.refused.is_none() {
            let train = end.datagrams(round, Kind::Segment).concat();
            match sendmsg::<()>(
                way.socket.as_raw_fd(),
                &[IoSlice::new(&train)],
                &[ControlMessage::UdpGsoSegments(&end.payload)],
                MsgFlags::empty(),
                None,
            ) {
                Ok(_) => sent.in_trains += u64::from(end.per_train),
                Err(nix::Error::EAGAIN | nix::Error::EINTR | nix::Error::ECONNREFUSED) => {}
                Err(error) => sent.refused = Some(error.desc().to_owned()),
            }
        }
        std::thread::sleep(pause);
    }
    say_end(&way, end.token, sent.plain);
    Ok(sent)
}

/// Looks at what arrives.
pub(crate) fn receive(
    listeners: &Listeners,
    end: &SegmentationEnd,
    keep_going: &dyn Fn() -> bool,
) -> Result<TrainsArrived, String> {
    end.check()?;
    let way = Way::new(listeners, end.token, &end.origin)?;
    let mut whole = [BTreeSet::new(), BTreeSet::new()];
    let mut mangled = BTreeSet::new();
    let all = u64::from(end.per_train) * u64::from(end.rounds);
    let limit = Duration::from_secs_f64(f64::from(end.rounds) * end.every * 2.0 + 8.0);
    let mut buffer = vec![0; PAYLOAD_AT_MOST];
    let heard = way.receive_all(limit, &mut buffer, keep_going, &mut |received, bytes| {
        if received.kind == Kind::End {
            return After::Until(Duration::from_millis(500));
        }
        if received.number < all {
            let sound = received.length == end.length(received.number)
                && datagram::is_whole(bytes, end.token, received.number);
            let in_train = received.kind == Kind::Segment;
            if sound {
                whole[usize::from(in_train)].insert(received.number);
            } else if in_train {
                mangled.insert(received.number);
            }
        }
        After::More
    })?;
    Ok(TrainsArrived {
        heard: heard.anybody,
        plain: whole[0].len() as u64,
        in_trains: whole[1].len() as u64,
        mangled: mangled.difference(&whole[1]).count() as u64,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

    use super::*;
    use crate::datagram_way::Listen;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn end(token: u64, origin: Origin) -> SegmentationEnd {
        SegmentationEnd {
            token,
            origin,
            payload: 500,
            per_train: 4,
            rounds: 10,
            every: 0.004,
        }
    }

    fn listening(token: u64) -> (Listeners, SocketAddr) {
        let listeners = Listeners::default();
        let listen = Listen {
            token,
            to: HERE,
            own: true,
            port: None,
            device: None,
        };
        let port = listeners.open(&listen).unwrap();
        (listeners, SocketAddr::new(HERE, port))
    }

    #[test]
    fn trains_arrive_as_what_was_put_on_them() {
        let (listeners, to) = listening(3);
        let origin = Origin::Calling { to, device: None };
        let (sent, arrived) = std::thread::scope(|scope| {
            let there = end(3, Origin::Listening);
            let listeners = &listeners;
            let arrived = scope.spawn(move || receive(listeners, &there, &|| true));
            let sent = send(&Listeners::default(), &end(3, origin), &|| true);
            (sent.unwrap(), arrived.join().unwrap().unwrap())
        });
        assert_eq!(
            (sent.plain, arrived.plain),
            (40, 40),
            "{sent:?} {arrived:?}"
        );
        let in_trains = if sent.refused.is_none() { 40 } else { 0 };
        assert_eq!((sent.in_trains, arrived.in_trains), (in_trains, in_trains));
        assert_eq!(arrived.mangled, 0);
    }

    #[test]
    fn wrong_content_and_length_are_mangled_and_strangers_are_not() {
        let (listeners, to) = listening(4);
        let arrived = std::thread::scope(|scope| {
            let there = end(4, Origin::Listening);
            let listeners = &listeners;
            let arrived = scope.spawn(move || receive(listeners, &there, &|| true));
            let sender = UdpSocket::bind((HERE, 0)).unwrap();
            let wished = end(4, Origin::Listening);
            let mut train = wished.datagrams(0, Kind::Segment);
            train[0][100] ^= 1;
            train[1].truncate(300);
            for bytes in &train {
                sender.send_to(bytes, to).unwrap();
            }
            // Whole after all: a copy that came to grief is no loss.
            sender
                .send_to(&wished.datagrams(0, Kind::Segment)[1], to)
                .unwrap();
            // Uncut.
            sender
                .send_to(&wished.datagrams(1, Kind::Segment).concat(), to)
                .unwrap();
            sender.send_to(&[0x55; 500], to).unwrap();
            sender
                .send_to(&datagram::bare(4, Kind::Segment, u64::MAX), to)
                .unwrap();
            sender
                .send_to(&datagram::bare(4, Kind::End, 0), to)
                .unwrap();
            arrived.join().unwrap().unwrap()
        });
        assert_eq!(
            arrived,
            TrainsArrived {
                heard: true,
                plain: 0,
                in_trains: 3,
                mangled: 2
            }
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for (payload, per_train, rounds, every) in [
            (10, 4, 1, 0.1),
            (1200, 65, 1, 0.1),
            (2000, 64, 1, 0.1),
            (1200, 8, 0, 0.1),
            (1200, 8, 10, f64::NAN),
        ] {
            let end = SegmentationEnd {
                payload,
                per_train,
                rounds,
                every,
                ..end(1, Origin::Listening)
            };
            assert!(end.check().is_err(), "{end:?}");
        }
    }
}
