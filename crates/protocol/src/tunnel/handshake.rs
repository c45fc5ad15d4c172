//! Messages of the handshake, in and out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand_core::CryptoRng;

use super::{Event, HANDSHAKE_TRAFFIC_CLASS, Identity, Transmit, Tunnel, canonical, jitter};
use crate::cookie::Admission;
use crate::drops::DropReason;
use crate::index_table::Indexed;
use crate::keypair::Keypair;
use crate::lock::{Locked, Shared};
use crate::message::{CookieReply, Initiation, Kind, Macs, Response, kind};
use crate::noise;
use crate::peer::Peer;
use crate::time::{Now, Tai64n};

/// The least time between two initiations of one peer that are worked on.
const INITIATION_INTERVAL: Duration = Duration::from_millis(1_000 / 50);

impl Tunnel {
    /// Works on a message of the handshake. What is to be sent then, also what waited for a session, is in
    /// [`poll_transmit`](Self::poll_transmit). A drop is counted.
    ///
    /// It may take some 0.2 ms, so a caller with more than one thread may keep it off the one that moves data.
    pub fn handshake(
        &self,
        now: Now,
        source: SocketAddr,
        datagram: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<(), DropReason> {
        let source = canonical(source);
        let result = match kind(datagram) {
            _ if self.is_down() => Err(DropReason::InterfaceDown),
            Some(Kind::Initiation) => Initiation::parse(datagram)
                .ok_or(DropReason::Malformed)
                .and_then(|message| {
                    self.admitted(now, source, datagram, message.sender, rng, |own, rng| {
                        self.take_initiation(now, source, &message, own, rng)
                    })
                }),
            Some(Kind::Response) => Response::parse(datagram)
                .ok_or(DropReason::Malformed)
                .and_then(|message| {
                    self.admitted(now, source, datagram, message.sender, rng, |own, _| {
                        self.take_response(now, source, &message, own)
                    })
                }),
            Some(Kind::CookieReply) => CookieReply::parse(datagram)
                .ok_or(DropReason::Malformed)
                .and_then(|message| self.take_cookie(now, &message)),
            Some(Kind::Data) | None => Err(DropReason::Malformed),
        };
        if let Err(reason) = result {
            self.drops.count(reason);
        }
        result
    }

    /// Sends an initiation to the peer, instead of one it may not have answered.
    pub(super) fn send_initiation(&self, now: Now, peer: &Arc<Peer>, rng: &mut dyn CryptoRng) {
        let jitter = jitter(rng);
        let made = peer.endpoint().and_then(|destination| {
            let own = self.identity.reading();
            let bytes = self.make_initiation(now, peer, own.as_ref()?, rng)?;
            self.wipe_if_down(peer).ok()?;
            Some((destination, bytes))
        });
        let Some((destination, bytes)) = made else {
            self.with_timers(peer, |timers| timers.initiation_failed(now.instant, jitter));
            return;
        };
        self.with_timers(peer, |timers| timers.initiation_sent(now.instant, jitter));
        self.transmit_handshake(peer, destination, bytes);
    }

    /// Lets `work` at a message whose sender has earned it by its MACs; else it may get a cookie.
    fn admitted(
        &self,
        now: Now,
        source: SocketAddr,
        datagram: &[u8],
        sender: u32,
        rng: &mut dyn CryptoRng,
        work: impl FnOnce(&Identity, &mut dyn CryptoRng) -> Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let own = self.identity.reading();
        let own = own.as_ref().ok_or(DropReason::NoIdentity)?;
        let macs = Macs::of(datagram).ok_or(DropReason::Malformed)?;
        if !own.mac_keys.check_mac1(&macs) {
            return Err(DropReason::BadMac1);
        }
        let forced = self.forced_load.load(Ordering::Relaxed);
        match self.gate.admit(now.instant, forced, &macs, source, rng) {
            Admission::Admit => work(own, rng),
            Admission::TooMany => Err(DropReason::RateLimited),
            Admission::Withhold => Err(DropReason::CookieWithheld),
            Admission::SendCookie(cookie) => {
                let reply = cookie.reply(&own.mac_keys, &macs, sender, rng);
                self.transmit([Transmit {
                    destination: source,
                    peer: None,
                    traffic_class: 0,
                    bytes: reply.to_bytes().to_vec(),
                }]);
                Err(DropReason::CookieSent)
            }
        }
    }

    fn make_initiation(
        &self,
        now: Now,
        peer: &Arc<Peer>,
        own: &Identity,
        rng: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        let mut handshake = peer.handshake.locked();
        if peer.is_removed() {
            return None;
        }
        if let Some((index, _)) = handshake.initiated.take() {
            self.indices.remove(index);
        }
        let timestamp = Tai64n::after(handshake.latest_timestamp_sent, now.wall);
        let index = self.indices.allocate(peer, rng);
        let made = noise::initiate(
            &own.public,
            &peer.public_key,
            handshake.static_static(&own.private, &peer.public_key),
            timestamp,
            index,
            rng,
        );
        let Some((message, initiated)) = made else {
            self.indices.remove(index);
            return None;
        };
        handshake.latest_timestamp_sent = timestamp;
        handshake.initiated = Some((index, Box::new(initiated)));
        let mut bytes = message.to_bytes();
        handshake.cookies.sign(now.instant, &mut bytes);
        Some(bytes.to_vec())
    }

    fn take_initiation(
        &self,
        now: Now,
        source: SocketAddr,
        message: &Initiation,
        own: &Identity,
        rng: &mut dyn CryptoRng,
    ) -> Result<(), DropReason> {
        let introduced = noise::read_introduction(message, &own.private, &own.public)
            .ok_or(DropReason::NotAuthentic)?;
        let peer = self
            .peer(&introduced.initiator)
            .ok_or(DropReason::UnknownPeer)?;
        let bytes = {
            let mut handshake = peer.handshake.locked();
            if peer.is_removed() {
                return Err(DropReason::UnknownPeer);
            }
            let received = introduced
                .read_timestamp(
                    message,
                    handshake.static_static(&own.private, &peer.public_key),
                )
                .ok_or(DropReason::NotAuthentic)?;
            if received.timestamp <= handshake.latest_timestamp_received {
                return Err(DropReason::InitiationReplayed);
            }
            if handshake
                .latest_initiation_taken
                .is_some_and(|last| !now.instant.reached(last, INITIATION_INTERVAL))
            {
                return Err(DropReason::InitiationTooSoon);
            }
            handshake.latest_timestamp_received = received.timestamp;
            handshake.latest_initiation_taken = Some(now.instant);

            let index = self.indices.allocate(&peer, rng);
            let answered = noise::respond(
                received,
                message.sender,
                &handshake.preshared_key,
                index,
                rng,
            );
            let Some((response, secrets)) = answered else {
                self.indices.remove(index);
                return Err(DropReason::NotAuthentic);
            };
            let mut bytes = response.to_bytes();
            handshake.cookies.sign(now.instant, &mut bytes);
            let keypair = Keypair::new(&secrets, false, index, message.sender, now.instant);
            self.install(&peer, keypair);
            bytes.to_vec()
        };
        self.wipe_if_down(&peer)?;
        peer.roam(source);
        peer.count_received(crate::message::INITIATION_BYTES);
        self.with_timers(&peer, |timers| {
            timers.received(now.instant);
            timers.response_sent(now.instant, jitter(rng));
        });
        self.transmit_handshake(&peer, source, bytes);
        Ok(())
    }

    fn take_response(
        &self,
        now: Now,
        source: SocketAddr,
        message: &Response,
        own: &Identity,
    ) -> Result<(), DropReason> {
        let Some(Indexed::Handshake(peer)) = self.indices.get(message.receiver) else {
            return Err(DropReason::UnknownIndex);
        };
        {
            let mut handshake = peer.handshake.locked();
            let (index, initiated) = handshake
                .initiated
                .as_ref()
                .filter(|(index, _)| *index == message.receiver)
                .ok_or(DropReason::UnknownIndex)?;
            let index = *index;
            let secrets =
                noise::read_response(message, initiated, &own.private, &handshake.preshared_key)
                    .ok_or(DropReason::NotAuthentic)?;
            handshake.initiated = None;
            let keypair = Keypair::new(&secrets, true, index, message.sender, now.instant);
            self.install(&peer, keypair);
        }
        self.wipe_if_down(&peer)?;
        peer.roam(source);
        peer.count_received(crate::message::RESPONSE_BYTES);
        peer.handshake_complete(now.wall);
        self.with_timers(&peer, |timers| {
            timers.session_derived(now.instant);
            timers.handshake_complete();
            timers.received(now.instant);
        });
        self.event(Event::HandshakeComplete(peer.public_key));
        // The responder may not send before it has heard from us.
        self.send_keepalive(now, &peer);
        Ok(())
    }

    /// Sees to it that no session outlives the interface's going down while it was made.
    fn wipe_if_down(&self, peer: &Peer) -> Result<(), DropReason> {
        if self.is_down() {
            self.wipe_keys(peer);
            return Err(DropReason::InterfaceDown);
        }
        Ok(())
    }

    fn take_cookie(&self, now: Now, message: &CookieReply) -> Result<(), DropReason> {
        let found = self
            .indices
            .get(message.receiver)
            .ok_or(DropReason::UnknownIndex)?;
        let accepted = found
            .peer()
            .handshake
            .locked()
            .cookies
            .accept(now.instant, message);
        accepted.then_some(()).ok_or(DropReason::NotAuthentic)
    }

    fn transmit_handshake(&self, peer: &Peer, destination: SocketAddr, bytes: Vec<u8>) {
        peer.count_sent(bytes.len());
        self.transmit([Transmit {
            destination,
            peer: Some(peer.id),
            traffic_class: HANDSHAKE_TRAFFIC_CLASS,
            bytes,
        }]);
    }
}
