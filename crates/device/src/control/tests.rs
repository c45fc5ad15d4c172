use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use wirespeed_protocol::{PresharedKey, PrivateKey, PublicKey};

use super::fake::{ANY_PORT, FakeInterface, MARK_FORBIDDEN, PORT_IN_USE};
use super::*;

mod live;

/// What is answered to these bytes, and the statistics after.
fn ask(interface: &FakeInterface, bytes: &str) -> (String, Value) {
    let uapi = Uapi::default();
    let mut answer = Vec::new();
    uapi.converse(interface, bytes.as_bytes(), &mut answer);
    (String::from_utf8(answer).unwrap(), uapi.statistics())
}

fn answer(interface: &FakeInterface, bytes: &str) -> String {
    ask(interface, bytes).0
}

fn get(interface: &FakeInterface) -> String {
    let answer = answer(interface, "get=1\n\n");
    let status = answer.strip_suffix("errno=0\n\n");
    status.expect("status at the end").to_owned()
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn key(byte: u8) -> PublicKey {
    PublicKey::from_bytes([byte; 32])
}

#[test]
fn what_is_set_can_be_got() {
    let interface = FakeInterface::new();
    let (own, psk, none) = (hex(0x48), hex(3), hex(0));
    let set = format!(
        "set=1\nprivate_key={own}\nlisten_port=51820\nfwmark=51\nreplace_peers=true\npublic_key={}\npreshared_key={psk}\n\
         endpoint=192.0.2.1:51820\npersistent_keepalive_interval=25\nreplace_allowed_ips=true\nallowed_ip=10.1.2.3/24\n\
         allowed_ip=2001:db8::1/32\nprotocol_version=1\npublic_key={}\nendpoint=[2001:db8::1]:9\n\n",
        hex(0xb1),
        hex(0xa2)
    );
    assert_eq!(answer(&interface, &set), "errno=0\n\n");
    assert_eq!(interface.changes(), 1);
    assert_eq!(
        get(&interface),
        format!(
            "private_key={own}\nlisten_port=51820\nfwmark=51\n\
             public_key={}\npreshared_key={psk}\nprotocol_version=1\nendpoint=192.0.2.1:51820\nlast_handshake_time_sec=0\n\
             last_handshake_time_nsec=0\ntx_bytes=0\nrx_bytes=0\npersistent_keepalive_interval=25\nallowed_ip=10.1.2.0/24\n\
             allowed_ip=2001:db8::/32\n\
             public_key={}\npreshared_key={none}\nprotocol_version=1\nendpoint=[2001:db8::1]:9\nlast_handshake_time_sec=0\n\
             last_handshake_time_nsec=0\ntx_bytes=0\nrx_bytes=0\npersistent_keepalive_interval=0\n",
            hex(0xb1),
            hex(0xa2),
        )
    );
}

#[test]
fn an_interface_without_anything_has_nothing_to_tell() {
    assert_eq!(get(&FakeInterface::new()), "");
}

#[test]
fn several_requests_are_answered_on_one_connection() {
    let interface = FakeInterface::new();
    let bytes = "set=1\nfwmark=7\n\nget=1\n\nset=1\nfwmark=0\n\nget=1\n\n";
    let (answer, statistics) = ask(&interface, bytes);
    assert_eq!(
        answer,
        "errno=0\n\nfwmark=7\nerrno=0\n\nerrno=0\n\nerrno=0\n\n"
    );
    assert_eq!(
        (&statistics["gets"], &statistics["sets"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn a_bad_line_changes_nothing_and_the_next_request_is_answered() {
    for (line, errno, failure) in [
        ("nonsense", 71, "no-pair"),
        ("nonsense=1", 22, "unknown-key"),
        ("allowed_ip=10.0.0.0/8", 22, "unknown-key"),
        ("listen_port=70000", 22, "bad-value"),
        ("public_key=00", 22, "bad-value"),
        ("private_key=zz", 22, "bad-value"),
        ("replace_peers=false", 22, "bad-value"),
    ] {
        let interface = FakeInterface::new();
        let bytes = format!("set=1\nfwmark=7\n{line}\nfwmark=8\n\nget=1\n\n");
        let (answer, statistics) = ask(&interface, &bytes);
        assert_eq!(answer, format!("errno=-{errno}\n\nerrno=0\n\n"), "{line}");
        assert_eq!(statistics["failures"][failure], 1, "{line}");
        assert_eq!(interface.changes(), 0, "{line}");
    }
    let interface = FakeInterface::new();
    let peer = format!("set=1\npublic_key={}\nlisten_port=1\n\n", hex(1));
    assert_eq!(answer(&interface, &peer), "errno=-22\n\n");
    assert!(interface.tunnel().peers().is_empty());
}

#[test]
fn what_is_no_request_is_told_so_and_left() {
    for (bytes, errno, failure) in [
        ("hello\n\nget=1\n\n", 71, "not-a-request"),
        ("get=1\nset=1\n\n", 22, "not-a-request"),
        ("set=1\nfwmark=7\n", 71, "unfinished"),
        (&format!("set=1\n{}\n\n", "a".repeat(5_000)), 7, "too-long"),
    ] {
        let interface = FakeInterface::new();
        let (answer, statistics) = ask(&interface, bytes);
        assert_eq!(answer, format!("errno=-{errno}\n\n"));
        assert_eq!(statistics["failures"][failure], 1, "{statistics}");
        assert_eq!(get(&interface), "");
    }
}

#[test]
fn what_the_system_refuses_is_told_and_what_came_before_holds() {
    let interface = FakeInterface::new();
    let peer = hex(1);
    let (answer, statistics) = ask(
        &interface,
        &format!("set=1\nfwmark=7\nlisten_port={PORT_IN_USE}\npublic_key={peer}\n\n"),
    );
    assert_eq!(answer, format!("errno=-{}\n\n", libc::EADDRINUSE));
    assert_eq!(statistics["failures"]["listen-port"], 1);
    assert_eq!((interface.fwmark(), interface.changes()), (7, 1));
    assert!(interface.tunnel().peers().is_empty());
    let (answer, statistics) = ask(&interface, &format!("set=1\nfwmark={MARK_FORBIDDEN}\n\n"));
    assert_eq!(answer, format!("errno=-{}\n\n", libc::EPERM));
    assert_eq!(statistics["failures"]["fwmark"], 1);
}

#[test]
fn any_port_can_be_asked_for() {
    let interface = FakeInterface::new();
    assert_eq!(
        answer(&interface, "set=1\nlisten_port=0\n\n"),
        "errno=0\n\n"
    );
    assert_eq!(get(&interface), format!("listen_port={ANY_PORT}\n"));
}

#[test]
fn our_own_key_is_no_peer() {
    let interface = FakeInterface::new();
    let private = PrivateKey::from_bytes([0x48; 32]);
    let own: String = private
        .public()
        .as_bytes()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    // As a peer before it was ours, and after.
    let before = format!("set=1\npublic_key={own}\nallowed_ip=10.0.0.0/8\n\n");
    assert_eq!(answer(&interface, &before), "errno=0\n\n");
    assert_eq!(interface.tunnel().peers().len(), 1);
    let after = format!(
        "set=1\nprivate_key={}\npublic_key={own}\nendpoint=192.0.2.1:1\nallowed_ip=10.0.0.0/8\nremove=true\n\n",
        hex(0x48)
    );
    assert_eq!(answer(&interface, &after), "errno=0\n\n");
    assert!(interface.tunnel().peers().is_empty());
}

#[test]
fn the_same_private_key_again_is_no_change() {
    let interface = FakeInterface::new();
    let tunnel = interface.tunnel();
    let set = format!("set=1\nprivate_key={}\n\n", hex(0x77));
    answer(&interface, &set);
    let public = tunnel.public_key();
    assert!(public.is_some());
    answer(&interface, &set);
    assert_eq!(tunnel.public_key(), public);
    answer(&interface, &format!("set=1\nprivate_key={}\n\n", hex(0)));
    assert_eq!(
        (tunnel.public_key(), get(&interface)),
        (None, String::new())
    );
}

#[test]
fn peers_come_and_go() {
    let interface = FakeInterface::new();
    let tunnel = interface.tunnel();
    let keys = || -> Vec<u8> {
        tunnel
            .peers()
            .iter()
            .map(|peer| peer.public_key().as_bytes()[0])
            .collect()
    };
    let set = |lines: &str| {
        assert_eq!(
            answer(&interface, &format!("set=1\n{lines}\n\n")),
            "errno=0\n\n"
        );
    };
    let peer = |byte| format!("public_key={}", hex(byte));
    set(&[peer(1), peer(2), peer(3)].join("\n"));
    assert_eq!(keys(), [1, 2, 3]);
    set(&format!("{}\nremove=true\nallowed_ip=10.0.0.0/8", peer(2)));
    assert_eq!(keys(), [1, 3]);
    set(&format!("{}\nremove=true", peer(9)));
    set(&format!(
        "{}\nupdate_only=true\nallowed_ip=10.0.0.0/8",
        peer(4)
    ));
    assert_eq!(keys(), [1, 3]);
    assert!(tunnel.route([10, 0, 0, 1].into()).is_none());
    set(&format!(
        "{}\nupdate_only=true\nallowed_ip=10.0.0.0/8",
        peer(3)
    ));
    assert_eq!(
        tunnel.route([10, 0, 0, 1].into()).unwrap().public_key(),
        &key(3)
    );
    set(&format!("replace_peers=true\n{}", peer(7)));
    assert_eq!(keys(), [7]);
    assert!(tunnel.route([10, 0, 0, 1].into()).is_none());
    // The same peer twice in one request is one peer.
    set(&[peer(7), peer(8), peer(7)].join("\n"));
    assert_eq!(keys(), [7, 8]);
}

#[test]
fn allowed_ips_are_given_moved_and_taken() {
    let interface = FakeInterface::new();
    let set = |lines: &str| {
        assert_eq!(
            answer(&interface, &format!("set=1\n{lines}\n\n")),
            "errno=0\n\n"
        );
    };
    let allowed = |byte| -> Vec<String> {
        let peer = interface.tunnel().peer(&key(byte)).unwrap();
        let allowed = interface.tunnel().allowed_ips(&peer);
        allowed.iter().map(ToString::to_string).collect()
    };
    set(&format!(
        "public_key={}\nallowed_ip=10.0.0.0/8\nallowed_ip=::/0\npublic_key={}\nallowed_ip=10.0.0.0/16",
        hex(1),
        hex(2)
    ));
    assert_eq!(allowed(1), ["10.0.0.0/8", "::/0"]);
    // A range has one owner.
    set(&format!("public_key={}\nallowed_ip=10.0.0.0/8", hex(2)));
    assert_eq!((allowed(1), allowed(2).len()), (vec!["::/0".to_owned()], 2));
    // What isn't exactly the peer's isn't taken.
    set(&format!(
        "public_key={}\nallowed_ip=-10.0.0.0/8\nallowed_ip=-::/1\nallowed_ip=-::/0",
        hex(1)
    ));
    assert_eq!((allowed(1).len(), allowed(2).len()), (0, 2));
    set(&format!("public_key={}\nallowed_ip=-10.0.0.0/8", hex(2)));
    assert_eq!(allowed(2), ["10.0.0.0/16"]);
    set(&format!(
        "public_key={}\nreplace_allowed_ips=true\nallowed_ip=10.9.0.0/16",
        hex(2)
    ));
    assert_eq!(allowed(2), ["10.9.0.0/16"]);
}

#[test]
fn a_peers_settings_are_what_was_said_last() {
    let interface = FakeInterface::new();
    let set = |lines: &str| {
        let lines = format!("set=1\npublic_key={}\n{lines}\n\n", hex(1));
        assert_eq!(answer(&interface, &lines), "errno=0\n\n");
    };
    set("persistent_keepalive_interval=7\nendpoint=[::ffff:192.0.2.1]:9");
    let peer = interface.tunnel().peer(&key(1)).unwrap();
    assert_eq!(peer.endpoint(), Some(SocketAddr::from(([192, 0, 2, 1], 9))));
    assert_eq!(
        peer.persistent_keepalive().map(|every| every.as_secs()),
        Some(7)
    );
    set(&format!(
        "persistent_keepalive_interval=0\npreshared_key={}",
        hex(5)
    ));
    assert_eq!(peer.persistent_keepalive(), None);
    assert!(peer.preshared_key() == PresharedKey::from_bytes([5; 32]));
    set(&format!("preshared_key={}", hex(0)));
    assert!(peer.preshared_key() == PresharedKey::default());
}

#[test]
fn a_scope_is_shown_by_its_name() {
    let interface = FakeInterface::new();
    let set = format!("set=1\npublic_key={}\nendpoint=[fe80::1%lo]:9\n\n", hex(1));
    assert_eq!(answer(&interface, &set), "errno=0\n\n");
    assert!(get(&interface).contains("\nendpoint=[fe80::1%lo]:9\n"));
    let set = format!(
        "set=1\npublic_key={}\nendpoint=[fe80::1%4294967295]:9\n\n",
        hex(1)
    );
    assert_eq!(answer(&interface, &set), "errno=0\n\n");
    assert!(get(&interface).contains("\nendpoint=[fe80::1%4294967295]:9\n"));
}

/// Peers like those of a provider: endpoint, preshared key, keepalive, two ranges.
fn many_peers(number: u32) -> String {
    let mut set = format!("set=1\nprivate_key={}\nreplace_peers=true\n", hex(0x48));
    for peer in 0..number {
        let [_, a, b, c] = peer.to_be_bytes();
        let _ = write!(
            set,
            "public_key={peer:08x}{}\npreshared_key={}\nendpoint=198.51.{b}.{c}:51820\npersistent_keepalive_interval=0\n\
             replace_allowed_ips=true\nallowed_ip=10.{a}.{b}.{c}/32\nallowed_ip=2001:db8:{a:x}:{b:x}{c:02x}::/64\n",
            "5a".repeat(28),
            hex(9)
        );
    }
    set.push('\n');
    set
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn ten_thousand_peers_are_set_and_got_in_no_time() {
    let interface = FakeInterface::new();
    let set = many_peers(10_000);
    // A debug build is given more than the second that it shall take, and nobody is blamed for a busy machine.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });
    for _ in 0..2 {
        let begun = processor_time();
        assert_eq!(answer(&interface, &set), "errno=0\n\n");
        let took = processor_time().saturating_sub(begun);
        assert!(took < limit, "set: {took:?}");
    }
    let begun = processor_time();
    let got = get(&interface);
    let took = processor_time().saturating_sub(begun);
    assert!(took < limit, "get: {took:?}");
    assert_eq!(got.matches("public_key=").count(), 10_000);
    assert_eq!(got.matches("allowed_ip=").count(), 20_000);
}

#[test]
fn an_answer_to_a_set_comes_in_one_piece() {
    struct Pieces(Vec<Vec<u8>>);
    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut pieces = Pieces(Vec::new());
    let requests = &b"set=1\n\nset=1\nx\n\n"[..];
    Uapi::default().converse(&FakeInterface::new(), requests, &mut pieces);
    assert_eq!(pieces.0, [&b"errno=0\n\n"[..], b"errno=-71\n\n"]);
}

#[test]
fn a_get_is_written_in_bounded_pieces() {
    struct Longest(usize);
    impl Write for Longest {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.max(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let interface = FakeInterface::new();
    answer(&interface, &many_peers(1_000));
    let mut longest = Longest(0);
    super::get::get(&interface, &mut longest).unwrap();
    assert!((10_000..=32_768).contains(&longest.0), "{}", longest.0);
}
