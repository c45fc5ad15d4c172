//! The handshake against snow, another implementation of the Noise framework, in both roles.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use snow::{Builder, HandshakeState};

use super::*;
use crate::time::WallTime;

#[derive(Debug)]
struct Keys {
    initiator: PrivateKey,
    responder: PrivateKey,
    psk: PresharedKey,
}

impl Keys {
    fn static_static(&self) -> Option<Secret> {
        self.initiator.agree(&self.responder.public())
    }
}

fn snow(own: &PrivateKey, peer: Option<&PublicKey>, psk: &PresharedKey) -> HandshakeState {
    let private = own.to_bytes();
    let builder = Builder::new("Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s".parse().unwrap())
        .prologue(IDENTIFIER)
        .unwrap()
        .local_private_key(private.as_slice())
        .unwrap()
        .psk(2, psk.as_bytes())
        .unwrap();
    match peer {
        Some(peer) => builder
            .remote_public_key(peer.as_bytes())
            .unwrap()
            .build_initiator()
            .unwrap(),
        None => builder.build_responder().unwrap(),
    }
}

fn start(keys: &Keys, rng: &mut StdRng, timestamp: Tai64n) -> (Initiation, Initiated) {
    initiate(
        &keys.initiator.public(),
        &keys.responder.public(),
        keys.static_static().as_ref(),
        timestamp,
        77,
        rng,
    )
    .unwrap()
}

/// What snow calls the message: without WireGuard's type, indices and MACs.
fn noise_part(initiation: &Initiation) -> Vec<u8> {
    initiation.to_bytes()[8..116].to_vec()
}

fn sealed(secret: &Secret, counter: u64, plain: &[u8]) -> Vec<u8> {
    let mut text = plain.to_vec();
    text.resize(plain.len() + TAG_BYTES, 0);
    Key::new(secret).seal(counter, &[], &mut text);
    text
}

prop_compose! {
    fn any_keys()(initiator: [u8; 32], responder: [u8; 32], psk: [u8; 32]) -> Keys {
        Keys {
            initiator: PrivateKey::from_bytes(initiator),
            responder: PrivateKey::from_bytes(responder),
            psk: PresharedKey::from_bytes(psk),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn we_initiate_and_snow_responds(keys in any_keys(), seed: u64, label: [u8; 12]) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (initiation, initiated) = start(&keys, &mut rng, Tai64n::from_bytes(label));
        let mut theirs = snow(&keys.responder, None, &keys.psk);
        let mut buffer = [0; 200];
        let length = theirs.read_message(&noise_part(&initiation), &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], &label[..]);
        let known = keys.initiator.public();
        prop_assert_eq!(theirs.get_remote_static().unwrap(), &known.as_bytes()[..]);

        let length = theirs.write_message(&[], &mut buffer).unwrap();
        prop_assert_eq!(length, 48);
        let response = Response {
            sender: 1, receiver: 77,
            ephemeral: buffer[..32].try_into().unwrap(),
            nothing_sealed: buffer[32..48].try_into().unwrap(),
        };
        let secrets = read_response(&response, &initiated, &keys.initiator, &keys.psk).unwrap();

        let mut theirs = theirs.into_transport_mode().unwrap();
        let length = theirs.read_message(&sealed(&secrets.from_initiator, 0, b"to snow"), &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], b"to snow");
        let length = theirs.write_message(b"from snow", &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], &sealed(&secrets.from_responder, 0, b"from snow")[..]);
    }

    #[test]
    fn snow_initiates_and_we_respond(keys in any_keys(), seed: u64, label: [u8; 12]) {
        let mut theirs = snow(&keys.initiator, Some(&keys.responder.public()), &keys.psk);
        let mut buffer = [0; 200];
        let length = theirs.write_message(&label, &mut buffer).unwrap();
        prop_assert_eq!(length, 108);
        let initiation = Initiation {
            sender: 5,
            ephemeral: buffer[..32].try_into().unwrap(),
            static_sealed: buffer[32..80].try_into().unwrap(),
            timestamp_sealed: buffer[80..108].try_into().unwrap(),
        };
        let introduced = read_introduction(&initiation, &keys.responder, &keys.responder.public()).unwrap();
        prop_assert_eq!(introduced.initiator, keys.initiator.public());
        let received = introduced.read_timestamp(&initiation, keys.static_static().as_ref()).unwrap();
        prop_assert_eq!(received.timestamp.as_bytes(), &label);
        let mut rng = StdRng::seed_from_u64(seed);
        let (response, secrets) = respond(received, 5, &keys.psk, 6, &mut rng).unwrap();
        prop_assert_eq!(theirs.read_message(&response.to_bytes()[12..60], &mut buffer).unwrap(), 0);

        let mut theirs = theirs.into_transport_mode().unwrap();
        let length = theirs.write_message(b"from snow", &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], &sealed(&secrets.from_initiator, 0, b"from snow")[..]);
        let length = theirs.read_message(&sealed(&secrets.from_responder, 0, b"to snow"), &mut buffer).unwrap();
        prop_assert_eq!(&buffer[..length], b"to snow");
    }

    #[test]
    fn a_changed_byte_in_either_message_ends_the_handshake(
        keys in any_keys(), at in 8usize..116, bit in 0..8u8, in_response: bool,
    ) {
        let mut rng = StdRng::seed_from_u64(1);
        let label = Tai64n::at(WallTime::default());
        let (mut initiation, initiated) = start(&keys, &mut rng, label);
        if !in_response {
            let mut bytes = initiation.to_bytes();
            bytes[at] ^= 1 << bit;
            initiation = Initiation::parse(&bytes).unwrap();
        }
        let received = read_introduction(&initiation, &keys.responder, &keys.responder.public())
            .filter(|introduced| introduced.initiator == keys.initiator.public())
            .and_then(|introduced| introduced.read_timestamp(&initiation, keys.static_static().as_ref()));
        if !in_response {
            // X25519 ignores the top bit of a public key, but the transcript's hash doesn't.
            prop_assert!(received.is_none());
            return Ok(());
        }
        let (response, _) = respond(received.unwrap(), 77, &keys.psk, 6, &mut rng).unwrap();
        let mut bytes = response.to_bytes();
        bytes[12 + at % 48] ^= 1 << bit;
        let response = Response::parse(&bytes).unwrap();
        prop_assert!(read_response(&response, &initiated, &keys.initiator, &keys.psk).is_none());
    }
}

#[test]
fn another_preshared_key_ends_the_handshake() {
    let keys = Keys {
        initiator: PrivateKey::from_bytes([1; 32]),
        responder: PrivateKey::from_bytes([2; 32]),
        psk: PresharedKey::from_bytes([3; 32]),
    };
    let mut rng = StdRng::seed_from_u64(1);
    let (initiation, initiated) = start(&keys, &mut rng, Tai64n::default());
    let received = read_introduction(&initiation, &keys.responder, &keys.responder.public())
        .unwrap()
        .read_timestamp(&initiation, keys.static_static().as_ref())
        .unwrap();
    let other = PresharedKey::from_bytes([4; 32]);
    let (response, _) = respond(received, 77, &other, 6, &mut rng).unwrap();
    assert!(read_response(&response, &initiated, &keys.initiator, &keys.psk).is_none());
    let secrets = read_response(&response, &initiated, &keys.initiator, &other);
    assert!(secrets.is_some(), "a wrong guess doesn't spoil the state");
}

#[test]
fn a_peer_of_low_order_gets_no_handshake() {
    let own = PrivateKey::from_bytes([1; 32]);
    let zero = PublicKey::from_bytes([0; 32]);
    let mut rng = StdRng::seed_from_u64(1);
    let agreed = own.agree(&zero);
    let started = initiate(
        &own.public(),
        &zero,
        agreed.as_ref(),
        Tai64n::default(),
        1,
        &mut rng,
    );
    assert!(started.is_none());

    let mut initiation = Initiation {
        sender: 0,
        ephemeral: [0; 32],
        static_sealed: [0; 48],
        timestamp_sealed: [0; 28],
    };
    for low in [0, 1] {
        initiation.ephemeral[0] = low;
        assert!(read_introduction(&initiation, &own, &own.public()).is_none());
    }
}
