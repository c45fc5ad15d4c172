//! Keeping the expensive part of a handshake for those who earned it (whitepaper, 5.3 and 5.4.7).
//!
//! MAC1 shows that the sender knows whom it talks to. While the interface is under load, MAC2 shows in addition
//! that the sender receives at the address it sends from: it is made with a cookie we sent there,
//! and a cookie is a MAC of address *and port* under a secret of ours that changes every two minutes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::aead::{EXTENDED_NONCE_BYTES, TAG_BYTES, open_extended, seal_extended};
use crate::hash::{HASH_BYTES, MAC_BYTES, Secret, hash, mac};
use crate::keys::PublicKey;
use crate::lock::Locked;
use crate::message::{CookieReply, MACS_BYTES, Macs};
use crate::rate_limit::RateLimiter;
use crate::reply_limit::ReplyLimiter;
use crate::time::Instant;

const SECRET_MAX_AGE: Duration = Duration::from_secs(120);

/// A cookie on its way may come too late, so we stop using one this much before its secret is gone.
const SECRET_LATENCY: Duration = Duration::from_secs(5);

/// Load is thought to go on for this long after it was last seen.
const LOAD_LASTS: Duration = Duration::from_secs(1);

/// The keys of both MACs, made of the public key of the side that checks them.
pub(crate) struct MacKeys {
    mac1: [u8; HASH_BYTES],
    cookie: [u8; HASH_BYTES],
}

impl MacKeys {
    pub(crate) fn of(checker: &PublicKey) -> Self {
        Self {
            mac1: hash(&[b"mac1----", checker.as_bytes()]),
            cookie: hash(&[b"cookie--", checker.as_bytes()]),
        }
    }

    /// Whether MAC1 of this message is right.
    pub(crate) fn check_mac1(&self, macs: &Macs<'_>) -> bool {
        mac(&self.mac1, &[macs.covered_by_mac1])
            .ct_eq(&macs.mac1)
            .into()
    }
}

/// What is to be done with a message whose MAC1 is right.
pub(crate) enum Admission {
    /// Work on it.
    Admit,
    /// Send this cookie instead.
    SendCookie(Cookie),
    /// Its sender is where it says, but sends too many.
    TooMany,
    /// Its sender's address, which may be forged, was sent too many cookies.
    Withhold,
}

/// A cookie, for one address and port.
pub(crate) struct Cookie(Zeroizing<[u8; MAC_BYTES]>);

/// The side that checks. Any number of threads may; none computes anything while it holds the lock.
pub(crate) struct Gate(Mutex<State>);

struct State {
    secret: Secret,
    secret_born: Instant,
    load: Load,
    limiter: RateLimiter,
    replies: ReplyLimiter,
}

impl Gate {
    /// `per_second`: more handshake messages than this in a second are load.
    pub(crate) fn new(now: Instant, per_second: u32, rng: &mut dyn CryptoRng) -> Self {
        let mut state = State {
            secret: Secret::default(),
            secret_born: now,
            load: Load::new(now, per_second),
            limiter: RateLimiter::default(),
            replies: ReplyLimiter::new(now, rng),
        };
        state.renew_secret(now, rng);
        Self(Mutex::new(state))
    }

    /// Judges a message whose MAC1 is right. `source` is in canonical form (no v4-mapped address).
    pub(crate) fn admit(
        &self,
        now: Instant,
        forced_load: bool,
        macs: &Macs<'_>,
        source: SocketAddr,
        rng: &mut dyn CryptoRng,
    ) -> Admission {
        let secret = {
            let mut state = self.0.locked();
            if !state.load.count(now) && !forced_load {
                return Admission::Admit;
            }
            state.secret(now, rng).clone()
        };
        // Most messages of a flood have no cookie, and most of these get none.
        if macs.has_mac2() && Cookie::new(&secret, source).made_mac2_of(macs) {
            if self.0.locked().limiter.allow(now, source.ip()) {
                Admission::Admit
            } else {
                Admission::TooMany
            }
        } else if self.0.locked().replies.allow(now, source.ip()) {
            Admission::SendCookie(Cookie::new(&secret, source))
        } else {
            Admission::Withhold
        }
    }
}

impl State {
    fn secret(&mut self, now: Instant, rng: &mut dyn CryptoRng) -> &Secret {
        if now.reached(self.secret_born, SECRET_MAX_AGE) {
            self.renew_secret(now, rng);
        }
        &self.secret
    }

    fn renew_secret(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        rng.fill_bytes(self.secret.as_mut_slice());
        self.secret_born = now;
    }
}

impl Cookie {
    fn new(secret: &Secret, source: SocketAddr) -> Self {
        let port = source.port().to_be_bytes();
        Self(Zeroizing::new(match source.ip() {
            IpAddr::V4(address) => mac(secret.as_slice(), &[&address.octets(), &port]),
            IpAddr::V6(address) => mac(secret.as_slice(), &[&address.octets(), &port]),
        }))
    }

    fn made_mac2_of(&self, macs: &Macs<'_>) -> bool {
        mac(self.0.as_slice(), &[macs.covered_by_mac2])
            .ct_eq(&macs.mac2)
            .into()
    }

    /// The answer with this cookie to the message with these MACs and this sender's index.
    pub(crate) fn reply(
        &self,
        own: &MacKeys,
        macs: &Macs<'_>,
        sender: u32,
        rng: &mut dyn CryptoRng,
    ) -> CookieReply {
        let mut nonce = [0; EXTENDED_NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        let mut cookie_sealed = [0; MAC_BYTES + TAG_BYTES];
        cookie_sealed[..MAC_BYTES].copy_from_slice(self.0.as_slice());
        seal_extended(&own.cookie, &nonce, &macs.mac1, &mut cookie_sealed);
        CookieReply {
            receiver: sender,
            nonce,
            cookie_sealed,
        }
    }
}

/// Whether handshake messages come faster than they are to be worked on: a bucket that holds a second's worth.
struct Load {
    per_second: u32,
    saved: Duration,
    last: Instant,
    until: Option<Instant>,
}

impl Load {
    fn new(now: Instant, per_second: u32) -> Self {
        Self {
            per_second: per_second.max(1),
            saved: LOAD_LASTS,
            last: now,
            until: None,
        }
    }

    /// Counts a message; true when there is load.
    fn count(&mut self, now: Instant) -> bool {
        let cost = LOAD_LASTS / self.per_second;
        self.saved = LOAD_LASTS.min(self.saved + now.since(self.last));
        self.last = self.last.max(now);
        if let Some(left) = self.saved.checked_sub(cost) {
            self.saved = left;
        } else {
            self.until = Some(now + LOAD_LASTS);
        }
        self.until.is_some_and(|until| now < until)
    }
}

/// The side that is checked: what one peer sent us to prove our address with.
pub(crate) struct CookieJar {
    keys: MacKeys,
    cookie: Option<(Zeroizing<[u8; MAC_BYTES]>, Instant)>,
    /// MAC1 of our last message, while no cookie answered it. The reply is bound to it.
    unanswered_mac1: Option<[u8; MAC_BYTES]>,
}

impl CookieJar {
    pub(crate) fn new(peer: &PublicKey) -> Self {
        Self {
            keys: MacKeys::of(peer),
            cookie: None,
            unanswered_mac1: None,
        }
    }

    /// Writes both MACs at the end of an initiation or response.
    pub(crate) fn sign(&mut self, now: Instant, message: &mut [u8]) {
        let Some(at) = message.len().checked_sub(MACS_BYTES) else {
            debug_assert!(false, "no room for MACs in {} bytes", message.len());
            return;
        };
        let mac1 = mac(&self.keys.mac1, &[&message[..at]]);
        message[at..at + MAC_BYTES].copy_from_slice(&mac1);
        self.unanswered_mac1 = Some(mac1);
        let fresh = self
            .cookie
            .as_ref()
            .filter(|(_, born)| !now.reached(*born, SECRET_MAX_AGE.saturating_sub(SECRET_LATENCY)));
        if let Some((cookie, _)) = fresh {
            let mac2 = mac(cookie.as_slice(), &[&message[..at + MAC_BYTES]]);
            message[at + MAC_BYTES..].copy_from_slice(&mac2);
        }
    }

    /// Takes the cookie of a reply. False when it doesn't answer our last message or is forged.
    pub(crate) fn accept(&mut self, now: Instant, reply: &CookieReply) -> bool {
        let Some(mac1) = self.unanswered_mac1 else {
            return false;
        };
        let mut text = Zeroizing::new(reply.cookie_sealed);
        if !open_extended(&self.keys.cookie, &reply.nonce, &mac1, text.as_mut_slice()) {
            return false;
        }
        let mut cookie = Zeroizing::new([0; MAC_BYTES]);
        cookie.copy_from_slice(&text[..MAC_BYTES]);
        self.cookie = Some((cookie, now));
        self.unanswered_mac1 = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::keys::PrivateKey;

    struct Sides {
        own: MacKeys,
        gate: Gate,
        jar: CookieJar,
        rng: StdRng,
    }

    impl Sides {
        fn new() -> Self {
            let mut rng = StdRng::seed_from_u64(1);
            let checker = PrivateKey::from_bytes([1; 32]).public();
            Self {
                own: MacKeys::of(&checker),
                gate: Gate::new(at(0), 1_000, &mut rng),
                jar: CookieJar::new(&checker),
                rng,
            }
        }

        fn message(&mut self, second: u64) -> [u8; 92] {
            let mut message = [0x5a; 92];
            message[60..].fill(0);
            self.jar.sign(at(second), &mut message);
            message
        }

        fn judge(&mut self, second: u64, message: &[u8], source: &str) -> Admission {
            let macs = Macs::of(message).unwrap();
            assert!(self.own.check_mac1(&macs));
            let source = source.parse().unwrap();
            self.gate
                .admit(at(second), true, &macs, source, &mut self.rng)
        }

        fn admit(&mut self, second: u64, message: &[u8], source: &str) -> &'static str {
            match self.judge(second, message, source) {
                Admission::Admit => "admit",
                Admission::SendCookie(_) => "cookie",
                Admission::TooMany => "too many",
                Admission::Withhold => "withhold",
            }
        }

        fn reply(&mut self, second: u64, message: &[u8], source: &str) -> CookieReply {
            let Admission::SendCookie(cookie) = self.judge(second, message, source) else {
                panic!("no cookie");
            };
            let macs = Macs::of(message).unwrap();
            cookie.reply(&self.own, &macs, 7, &mut self.rng)
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn mac1_needs_the_checkers_public_key_and_every_bit() {
        let mut sides = Sides::new();
        let mut message = sides.message(0);
        assert!(sides.own.check_mac1(&Macs::of(&message).unwrap()));
        let other = MacKeys::of(&PrivateKey::from_bytes([2; 32]).public());
        assert!(!other.check_mac1(&Macs::of(&message).unwrap()));
        message[59] ^= 1;
        assert!(!sides.own.check_mac1(&Macs::of(&message).unwrap()));
    }

    #[test]
    fn a_cookie_admits_from_its_address_and_port_only() {
        let mut sides = Sides::new();
        for source in ["192.0.2.1:1000", "[2001:db8::1]:1000"] {
            let message = sides.message(0);
            let reply = sides.reply(0, &message, source);
            assert_eq!(reply.receiver, 7);
            assert!(sides.jar.accept(at(0), &reply));
            let message = sides.message(1);
            assert_eq!(sides.admit(1, &message, source), "admit");
            for other in [
                "192.0.2.1:1001",
                "192.0.2.2:1000",
                "[2001:db8::1]:1001",
                "[2001:db8::2]:1000",
            ] {
                assert_eq!(sides.admit(1, &message, other), "cookie", "{other}");
            }
        }
    }

    #[test]
    fn a_cookie_ages_on_both_sides() {
        let mut sides = Sides::new();
        let message = sides.message(0);
        let reply = sides.reply(0, &message, "192.0.2.1:1");
        assert!(sides.jar.accept(at(0), &reply));
        let late = sides.message(114);
        assert_ne!(late[76..], [0; 16]);
        assert_eq!(sides.admit(119, &late, "192.0.2.1:1"), "admit");
        assert_eq!(
            sides.admit(120, &late, "192.0.2.1:1"),
            "cookie",
            "the secret is new"
        );
        assert_eq!(sides.message(115)[76..], [0; 16], "no longer used");
    }

    #[test]
    fn a_cookie_reply_answers_the_last_message_once() {
        let mut sides = Sides::new();
        let first = sides.message(0);
        let reply = sides.reply(0, &first, "192.0.2.1:1");
        let mut second = [1; 92];
        sides.jar.sign(at(0), &mut second);
        assert!(
            !sides.jar.accept(at(0), &reply),
            "bound to an older message"
        );
        let mut reply = sides.reply(0, &second, "192.0.2.1:1");
        reply.cookie_sealed[0] ^= 1;
        assert!(!sides.jar.accept(at(0), &reply), "forged");
        reply.cookie_sealed[0] ^= 1;
        assert!(sides.jar.accept(at(0), &reply));
        assert!(!sides.jar.accept(at(0), &reply), "replayed");
    }

    #[test]
    fn one_source_is_admitted_only_so_often() {
        let mut sides = Sides::new();
        let message = sides.message(0);
        let reply = sides.reply(0, &message, "192.0.2.1:1");
        sides.jar.accept(at(0), &reply);
        let message = sides.message(0);
        let all: Vec<&str> = (0..7)
            .map(|_| sides.admit(0, &message, "192.0.2.1:1"))
            .collect();
        assert_eq!(all[..5], ["admit"; 5]);
        assert_eq!(all[5..], ["too many"; 2]);
    }

    #[test]
    fn one_source_is_sent_only_so_many_cookies() {
        let mut sides = Sides::new();
        let message = sides.message(0);
        let all: Vec<&str> = (0..22u16)
            .map(|port| sides.admit(0, &message, &format!("192.0.2.1:{port}")))
            .collect();
        assert_eq!(all[..20], ["cookie"; 20]);
        assert_eq!(all[20..], ["withhold"; 2]);
        assert_eq!(sides.admit(0, &message, "198.51.100.1:1"), "cookie");
        assert_eq!(sides.admit(1, &message, "192.0.2.1:1"), "cookie");
    }

    #[test]
    fn load_begins_above_the_rate_and_ends_a_second_after() {
        let mut load = Load::new(at(0), 100);
        assert!((0..100).all(|_| !load.count(at(10))));
        assert!(load.count(at(10)), "more than a second's worth at once");
        assert!(load.count(Instant::from_nanos(10_900_000_000)), "still");
        assert!(!load.count(Instant::from_nanos(11_100_000_000)));
        let steady = (0..1_000u64)
            .filter(|n| load.count(at(20) + Duration::from_millis(10) * *n as u32))
            .count();
        assert_eq!(steady, 0, "exactly the rate is no load");
    }
}
