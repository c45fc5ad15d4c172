//! Datagrams to inner packets.
//!
//! ```text
//! session: by the receiver's index, once a run → Session::open: decryption in place, on any thread
//!     → accept: replay window, allowed IPs, address, timers; in the order of arrival
//! ```
//!
//! [`Tunnel::open`] is the three in one, over a batch that may mix peers and messages.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;

use super::{Event, Tunnel, canonical};
use crate::allowed_ips::AllowedIps;
use crate::drops::DropReason;
use crate::index_table::Indexed;
use crate::inner::InnerHeader;
use crate::keypair::{Keypair, Opener, plaintext_range};
use crate::lock::Shared;
use crate::message::{DataHeader, Kind, kind};
use crate::peer::{Peer, PeerId};
use crate::time::{Instant, Now};
use crate::timers::REKEY_WHEN_RECEIVING_AFTER;

/// A datagram that came in, in the caller's buffer, where it is decrypted.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The UDP payload; after opening, the inner packet is in it.
    pub bytes: &'a mut [u8],
    /// Who sent it, as the socket says.
    pub source: SocketAddr,
    /// What became of it so far.
    pub verdict: Verdict,
}

/// What became of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not looked at.
    Pending,
    /// Authentic, but not yet accepted: it may be a replay.
    Authentic {
        /// Its number in the session.
        counter: u64,
    },
    /// A message for [`Tunnel::handshake`]; the bytes are untouched.
    Handshake,
    /// An inner packet to be delivered.
    Packet {
        /// Where in the bytes it is, without padding.
        range: Range<usize>,
        /// Who it is from.
        peer: PeerId,
    },
    /// A keepalive: all right, and nothing to deliver.
    Keepalive,
    /// Nothing to deliver, for this reason. It is counted.
    Dropped(DropReason),
}

impl<'a> Incoming<'a> {
    /// A datagram nobody looked at.
    pub const fn new(bytes: &'a mut [u8], source: SocketAddr) -> Self {
        Self {
            bytes,
            source,
            verdict: Verdict::Pending,
        }
    }

    /// The inner packet, if there is one to deliver.
    pub fn packet(&self) -> Option<&[u8]> {
        match &self.verdict {
            Verdict::Packet { range, .. } => self.bytes.get(range.clone()),
            _ => None,
        }
    }

    /// The same, to be changed (ECN).
    pub fn packet_mut(&mut self) -> Option<&mut [u8]> {
        match &self.verdict {
            Verdict::Packet { range, .. } => self.bytes.get_mut(range.clone()),
            _ => None,
        }
    }
}

/// The session a run of datagrams belongs to.
#[derive(Clone)]
pub struct Session {
    peer: Arc<Peer>,
    keypair: Arc<Keypair>,
}

impl Session {
    /// Who it is with.
    pub const fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Decrypts those datagrams of the run in place that are pending and of this session; others are left pending.
    /// Takes no lock.
    pub fn open(&self, now: Now, run: &mut [Incoming<'_>]) {
        let opener = self.opener(now);
        for incoming in run {
            if let Some(header) = self.header(incoming) {
                decrypt(opener.as_ref(), header, incoming);
            }
        }
    }

    /// The same for the datagrams at the front of a batch that are of this session; returns how many they are.
    fn open_front(&self, now: Now, batch: &mut [Incoming<'_>]) -> usize {
        let opener = self.opener(now);
        for (at, incoming) in batch.iter_mut().enumerate() {
            let Some(header) = self.header(incoming) else {
                return at;
            };
            decrypt(opener.as_ref(), header, incoming);
        }
        batch.len()
    }

    /// `None` when the session is too old.
    fn opener(&self, now: Now) -> Option<Opener> {
        let in_time = self.keypair.may_receive(now.instant);
        in_time.then(|| self.keypair.opener())
    }

    /// The head of a datagram, if it is of this session.
    #[inline]
    fn header(&self, incoming: &Incoming<'_>) -> Option<DataHeader> {
        DataHeader::parse(incoming.bytes)
            .filter(|header| header.receiver == self.keypair.local_index)
    }
}

#[inline]
fn decrypt(opener: Option<&Opener>, header: DataHeader, incoming: &mut Incoming<'_>) {
    if !matches!(incoming.verdict, Verdict::Pending) {
        return;
    }
    incoming.verdict = match opener {
        None => Verdict::Dropped(DropReason::Expired),
        Some(opener) if opener.open(header, incoming.bytes) => Verdict::Authentic {
            counter: header.counter,
        },
        Some(_) => Verdict::Dropped(DropReason::NotAuthentic),
    };
}

impl Tunnel {
    /// Judges each datagram of a batch, decrypting data in place; the order stays. Messages of handshakes are marked,
    /// for [`handshake`](Self::handshake) takes long and may be done elsewhere.
    pub fn open(&self, now: Now, batch: &mut [Incoming<'_>]) {
        let mut rest = batch;
        while let Some(first) = rest.first_mut() {
            let run = match kind(first.bytes) {
                Some(Kind::Data) => self.open_run(now, rest),
                Some(_) => {
                    first.verdict = Verdict::Handshake;
                    1
                }
                None => {
                    self.refuse(first, DropReason::Malformed);
                    1
                }
            };
            rest = &mut rest[run..];
        }
    }

    /// The session this datagram is for.
    pub fn session(&self, datagram: &[u8]) -> Result<Session, DropReason> {
        let header = DataHeader::parse(datagram).ok_or(DropReason::Malformed)?;
        match self.indices.get(header.receiver) {
            Some(Indexed::Session(peer, keypair)) => Ok(Session { peer, keypair }),
            _ => Err(DropReason::UnknownIndex),
        }
    }

    /// Decides on the authentic datagrams of a run, in order: each counter once, inner source addresses only as allowed.
    /// Drops of the run are counted. Datagrams of other sessions are left as they are.
    pub fn accept(&self, now: Now, session: &Session, run: &mut [Incoming<'_>]) {
        self.accept_those(now, session, run, |incoming| {
            session.header(incoming).is_some()
        });
    }

    /// `ours` says which datagrams are of the session.
    fn accept_those(
        &self,
        now: Now,
        session: &Session,
        run: &mut [Incoming<'_>],
        ours: impl Fn(&Incoming<'_>) -> bool,
    ) {
        let Session { peer, keypair } = session;
        keypair.with_window(|window| {
            for incoming in run.iter_mut() {
                if let Verdict::Authentic { counter } = incoming.verdict
                    && ours(incoming)
                    && !window.accept(counter)
                {
                    incoming.verdict = Verdict::Dropped(DropReason::Replayed);
                }
            }
        });
        let mut bytes = 0;
        let mut data = false;
        let mut source = None;
        {
            let table = self.routes.table();
            let mut sources = Sources::of(peer.id, &table);
            for incoming in run.iter_mut() {
                let authentic = match incoming.verdict {
                    Verdict::Authentic { .. } => true,
                    Verdict::Dropped(_) => false,
                    _ => continue,
                };
                if !ours(incoming) {
                    continue;
                }
                if authentic {
                    let plain = plaintext_range(incoming.bytes);
                    bytes += incoming.bytes.len();
                    source = Some(incoming.source);
                    data |= !plain.is_empty();
                    incoming.verdict =
                        judge(&incoming.bytes[plain.clone()], plain.start, &mut sources);
                }
                if let Verdict::Dropped(reason) = incoming.verdict {
                    self.drops.count(reason);
                }
            }
        }
        if let Some(source) = source.filter(|_| !peer.is_removed()) {
            peer.roam(canonical(source));
            peer.count_received(bytes);
            self.note_received(now, session, data);
        }
    }

    /// Opens the datagrams at the front that are for the same session; returns how many.
    fn open_run(&self, now: Now, batch: &mut [Incoming<'_>]) -> usize {
        let first = &mut batch[0];
        let session = match self.session(first.bytes) {
            Ok(session) => session,
            Err(reason) => {
                self.refuse(first, reason);
                return 1;
            }
        };
        let run = session.open_front(now, batch);
        self.accept_those(now, &session, &mut batch[..run], |_| true);
        run
    }

    fn refuse(&self, incoming: &mut Incoming<'_>, reason: DropReason) {
        incoming.verdict = Verdict::Dropped(reason);
        self.drops.count(reason);
    }

    fn note_received(&self, now: Now, session: &Session, data: bool) {
        let Session { peer, keypair } = session;
        let confirmed = keypair.is_unconfirmed() && self.confirm(now.instant, keypair, peer);
        // No session in use is older than one that came before it, so a young one answers for all.
        let rekey = now
            .instant
            .reached(keypair.born, REKEY_WHEN_RECEIVING_AFTER)
            && peer.current().is_some_and(|current| {
                current.wants_rekey_when_receiving(now.instant, REKEY_WHEN_RECEIVING_AFTER)
            });
        self.with_timers(peer, |timers| {
            if confirmed {
                timers.handshake_complete();
            }
            if rekey {
                timers.want_last_minute_initiation(now.instant);
            }
            timers.received(now.instant);
            if data {
                timers.data_received(now.instant);
            }
        });
        if confirmed {
            peer.handshake_complete(now.wall);
            self.event(Event::HandshakeComplete(peer.public_key));
            if peer.has_staged() {
                self.flush_staged(now, peer);
            }
        }
    }

    /// The first datagram of a session we responded to: now we may send with it, too.
    fn confirm(&self, now: Instant, keypair: &Arc<Keypair>, peer: &Peer) -> bool {
        let over = peer.keypairs.writing().confirm(now, keypair);
        if let Some(over) = &over {
            self.indices.remove_sessions(over);
        }
        over.is_some()
    }
}

/// Which inner source addresses a peer may use. Remembers the last, since packets come in flows.
struct Sources<'a> {
    peer: PeerId,
    table: &'a AllowedIps<PeerId, Arc<Peer>>,
    last: Option<(IpAddr, bool)>,
}

impl<'a> Sources<'a> {
    const fn of(peer: PeerId, table: &'a AllowedIps<PeerId, Arc<Peer>>) -> Self {
        Self {
            peer,
            table,
            last: None,
        }
    }

    fn allow(&mut self, source: IpAddr) -> bool {
        if let Some((last, allowed)) = self.last
            && last == source
        {
            return allowed;
        }
        let owner = self.table.look_up(source).map(|(owner, _)| owner);
        let allowed = owner == Some(self.peer);
        self.last = Some((source, allowed));
        allowed
    }
}

/// What an authentic plaintext is, which begins at `start` of its datagram.
fn judge(plain: &[u8], start: usize, sources: &mut Sources<'_>) -> Verdict {
    if plain.is_empty() {
        return Verdict::Keepalive;
    }
    let Some(header) = InnerHeader::parse(plain) else {
        return Verdict::Dropped(DropReason::InnerMalformed);
    };
    if !sources.allow(header.source) {
        return Verdict::Dropped(DropReason::SourceNotAllowed);
    }
    Verdict::Packet {
        range: start..start + header.length,
        peer: sources.peer,
    }
}
