//! What one line of a `set` request says. No value of a line is ever put into an error, for it may be a key.

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use wirespeed_protocol::{KEY_BYTES, Prefix, PresharedKey, PrivateKey, PublicKey};
use zeroize::Zeroizing;

/// A line, understood.
#[derive(Debug)]
pub enum Line {
    /// Something of the interface; only before the first peer.
    Device(DeviceLine),
    /// The lines after this are about the peer with this key.
    Peer(PublicKey),
    /// Something of the peer chosen last.
    OfPeer(PeerLine),
}

/// Something to change of the interface.
#[derive(Debug)]
pub enum DeviceLine {
    /// Who we are; `None` for nobody.
    PrivateKey(Option<PrivateKey>),
    /// The port peers reach us at; 0 for any.
    ListenPort(u16),
    /// The mark on what we send; 0 for none.
    FwMark(u32),
    /// Remove all peers.
    ReplacePeers,
}

/// Something to change of a peer.
#[derive(Debug)]
pub enum PeerLine {
    /// Ignore the peer if it isn't there yet.
    UpdateOnly,
    /// Remove it.
    Remove,
    /// The key mixed into handshakes.
    PresharedKey(PresharedKey),
    /// Where it is.
    Endpoint(SocketAddr),
    /// How often it hears from us at least, in seconds; 0 for no such thing.
    PersistentKeepalive(u16),
    /// Take all its ranges.
    ReplaceAllowedIps,
    /// Give it this range.
    Allow(Prefix),
    /// Take this range from it.
    Disallow(Prefix),
    /// The protocol it speaks; there is but one.
    ProtocolVersion,
}

/// Why a line isn't understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no pair of key and value.
    #[error("it is not KEY=VALUE")]
    NoPair,
    /// The key isn't one of the interface, before any peer was named.
    #[error("its key is none of an interface's")]
    UnknownDeviceKey,
    /// The key isn't one of a peer.
    #[error("its key is none of a peer's")]
    UnknownPeerKey,
    /// The value doesn't fit the key.
    #[error("{key} has to be {expected}")]
    BadValue {
        /// A key we know.
        key: &'static str,
        /// What its values look like.
        expected: &'static str,
    },
}

/// Finds an interface's index by its name, for the scope of a link-local address.
pub type ScopeIndex<'a> = &'a dyn Fn(&str) -> Option<u32>;

/// Understands one line, given without its end. `of_peer` says whether a peer was named before.
pub fn parse(line: &[u8], of_peer: bool, scope_index: ScopeIndex<'_>) -> Result<Line, LineError> {
    let split = line.iter().position(|byte| *byte == b'=');
    let at = split.ok_or(LineError::NoPair)?;
    let value = Value(&line[at + 1..]);
    let key = &line[..at];
    if key == b"public_key" {
        let bytes = value.key("public_key")?;
        return Ok(Line::Peer(PublicKey::from_bytes(*bytes)));
    }
    if of_peer {
        peer_line(key, value, scope_index).map(Line::OfPeer)
    } else {
        device_line(key, value).map(Line::Device)
    }
}

fn device_line(key: &[u8], value: Value<'_>) -> Result<DeviceLine, LineError> {
    Ok(match key {
        b"private_key" => {
            let bytes = value.key("private_key")?;
            let none = bytes.iter().all(|byte| *byte == 0);
            DeviceLine::PrivateKey((!none).then(|| PrivateKey::from_bytes(*bytes)))
        }
        b"listen_port" => {
            DeviceLine::ListenPort(value.number("listen_port", "a number from 0 to 65535")?)
        }
        b"fwmark" => DeviceLine::FwMark(value.number("fwmark", "a number from 0 to 4294967295")?),
        b"replace_peers" => value
            .must_be("true", "replace_peers")
            .map(|()| DeviceLine::ReplacePeers)?,
        _ => return Err(LineError::UnknownDeviceKey),
    })
}

fn peer_line(
    key: &[u8],
    value: Value<'_>,
    scope_index: ScopeIndex<'_>,
) -> Result<PeerLine, LineError> {
    Ok(match key {
        b"update_only" => value
            .must_be("true", "update_only")
            .map(|()| PeerLine::UpdateOnly)?,
        b"remove" => value.must_be("true", "remove").map(|()| PeerLine::Remove)?,
        b"preshared_key" => {
            let bytes = value.key("preshared_key")?;
            PeerLine::PresharedKey(PresharedKey::from_bytes(*bytes))
        }
        b"endpoint" => PeerLine::Endpoint(value.endpoint(scope_index)?),
        b"persistent_keepalive_interval" => PeerLine::PersistentKeepalive(value.number(
            "persistent_keepalive_interval",
            "a number of seconds from 0 to 65535",
        )?),
        b"replace_allowed_ips" => value
            .must_be("true", "replace_allowed_ips")
            .map(|()| PeerLine::ReplaceAllowedIps)?,
        b"allowed_ip" => match value.0.strip_prefix(b"-") {
            Some(range) => PeerLine::Disallow(Value(range).prefix()?),
            None => PeerLine::Allow(value.prefix()?),
        },
        b"protocol_version" => value
            .must_be("1", "protocol_version")
            .map(|()| PeerLine::ProtocolVersion)?,
        _ => return Err(LineError::UnknownPeerKey),
    })
}

#[derive(Clone, Copy)]
struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    fn must_be(self, only: &'static str, key: &'static str) -> Result<(), LineError> {
        if self.0 == only.as_bytes() {
            return Ok(());
        }
        Err(LineError::BadValue {
            key,
            expected: only,
        })
    }

    /// 64 hexadecimal digits of either case.
    fn key(self, key: &'static str) -> Result<Zeroizing<[u8; KEY_BYTES]>, LineError> {
        let bad = LineError::BadValue {
            key,
            expected: "64 hexadecimal digits",
        };
        if self.0.len() != KEY_BYTES * 2 {
            return Err(bad);
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (byte, digits) in bytes.iter_mut().zip(self.0.as_chunks::<2>().0) {
            let [high, low] = digits.map(|digit| (digit as char).to_digit(16));
            let (Some(high), Some(low)) = (high, low) else {
                return Err(bad);
            };
            *byte = (high << 4 | low) as u8;
        }
        Ok(bytes)
    }

    /// Digits and nothing else, so no sign.
    fn number<N: FromStr>(self, key: &'static str, expected: &'static str) -> Result<N, LineError> {
        self.text()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .ok_or(LineError::BadValue { key, expected })
    }

    fn prefix(self) -> Result<Prefix, LineError> {
        let parse = || {
            let (address, length) = self.text()?.split_once('/')?;
            let canonical = length == "0" || length.starts_with(|c: char| ('1'..='9').contains(&c));
            let length: u8 = length.parse().ok().filter(|_| canonical)?;
            Prefix::new(address.parse::<IpAddr>().ok()?, length)
        };
        parse().ok_or(LineError::BadValue {
            key: "allowed_ip",
            expected: "ADDRESS/LENGTH, or -ADDRESS/LENGTH",
        })
    }

    fn endpoint(self, scope_index: ScopeIndex<'_>) -> Result<SocketAddr, LineError> {
        let parse = || {
            let text = self.text()?;
            text.parse()
                .ok()
                .or_else(|| scoped(text, scope_index).map(SocketAddr::V6))
        };
        parse().ok_or(LineError::BadValue {
            key: "endpoint",
            expected: "ADDRESS:PORT, [ADDRESS]:PORT or [ADDRESS%INTERFACE]:PORT of an interface that is there",
        })
    }
}

/// `[fe80::1%eth0]:51820`.
fn scoped(text: &str, scope_index: ScopeIndex<'_>) -> Option<SocketAddrV6> {
    let (inside, port) = text.strip_prefix('[')?.rsplit_once("]:")?;
    let (address, scope) = inside.split_once('%')?;
    let port = Value(port.as_bytes()).number("endpoint", "").ok()?;
    Some(SocketAddrV6::new(
        address.parse().ok()?,
        port,
        0,
        scope_index(scope)?,
    ))
}

impl fmt::Display for DeviceLine {
    /// The key and, where it is no secret, the value: for a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrivateKey(Some(_)) => f.write_str("private key set"),
            Self::PrivateKey(None) => f.write_str("private key removed"),
            Self::ListenPort(port) => write!(f, "listen port {port}"),
            Self::FwMark(mark) => write!(f, "fwmark {mark:#x}"),
            Self::ReplacePeers => f.write_str("all peers removed"),
        }
    }
}

impl fmt::Display for PeerLine {
    /// The key and, where it is no secret, the value: for a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpdateOnly => f.write_str("only if it is there"),
            Self::Remove => f.write_str("removed"),
            Self::PresharedKey(_) => f.write_str("preshared key set"),
            Self::Endpoint(address) => write!(f, "endpoint {address}"),
            Self::PersistentKeepalive(seconds) => write!(f, "persistent keepalive {seconds} s"),
            Self::ReplaceAllowedIps => f.write_str("all allowed IPs taken"),
            Self::Allow(prefix) => write!(f, "allowed {prefix}"),
            Self::Disallow(prefix) => write!(f, "no longer allowed {prefix}"),
            Self::ProtocolVersion => f.write_str("protocol version 1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a";

    fn scopes(name: &str) -> Option<u32> {
        (name == "eth0").then_some(7)
    }

    fn device(line: &str) -> Result<Line, LineError> {
        parse(line.as_bytes(), false, &scopes)
    }

    fn peer(line: &str) -> Result<Line, LineError> {
        parse(line.as_bytes(), true, &scopes)
    }

    fn endpoint(value: &str) -> Option<SocketAddr> {
        match peer(&format!("endpoint={value}")) {
            Ok(Line::OfPeer(PeerLine::Endpoint(address))) => Some(address),
            Err(LineError::BadValue {
                key: "endpoint", ..
            }) => None,
            other => panic!("{value}: {other:?}"),
        }
    }

    fn allowed(value: &str) -> Option<String> {
        match peer(&format!("allowed_ip={value}")) {
            Ok(Line::OfPeer(PeerLine::Allow(prefix))) => Some(prefix.to_string()),
            Ok(Line::OfPeer(PeerLine::Disallow(prefix))) => Some(format!("-{prefix}")),
            Err(LineError::BadValue {
                key: "allowed_ip", ..
            }) => None,
            other => panic!("{value}: {other:?}"),
        }
    }

    #[test]
    fn keys_are_64_hexadecimal_digits() {
        for text in [KEY.to_owned(), KEY.to_uppercase()] {
            let line = format!("public_key={text}");
            let Ok(Line::Peer(key)) = device(&line) else {
                panic!("{line}")
            };
            assert_eq!(key.as_bytes()[..3], [0xe8, 0x4b, 0x5a]);
        }
        for text in [
            "",
            "e8",
            &KEY[1..],
            &format!("{KEY}0"),
            &KEY.replace('e', "g"),
            &KEY.replace("e8", "é"),
        ] {
            assert!(device(&format!("public_key={text}")).is_err(), "{text}");
            assert!(device(&format!("private_key={text}")).is_err(), "{text}");
            assert!(peer(&format!("preshared_key={text}")).is_err(), "{text}");
        }
    }

    #[test]
    fn a_private_key_of_zeros_is_none() {
        let zeros = "0".repeat(64);
        assert!(matches!(
            device(&format!("private_key={zeros}")),
            Ok(Line::Device(DeviceLine::PrivateKey(None)))
        ));
        assert!(matches!(
            device(&format!("private_key={KEY}")),
            Ok(Line::Device(DeviceLine::PrivateKey(Some(_))))
        ));
    }

    #[test]
    fn keys_of_the_interface_and_of_peers_do_not_mix() {
        assert!(matches!(
            device("remove=true"),
            Err(LineError::UnknownDeviceKey)
        ));
        assert!(matches!(
            peer("listen_port=1"),
            Err(LineError::UnknownPeerKey)
        ));
        assert!(matches!(device("listen_port"), Err(LineError::NoPair)));
        assert!(matches!(device("=1"), Err(LineError::UnknownDeviceKey)));
    }

    #[test]
    fn numbers_have_no_sign_and_no_space() {
        for value in ["0", "51820", "65535", "00001"] {
            assert!(device(&format!("listen_port={value}")).is_ok(), "{value}");
        }
        for value in ["", "+1", "-1", "65536", " 1", "1 ", "0x1", "1_0", "1\r"] {
            assert!(device(&format!("listen_port={value}")).is_err(), "{value}");
        }
        assert!(device("fwmark=4294967295").is_ok() && device("fwmark=4294967296").is_err());
        assert!(peer("persistent_keepalive_interval=65535").is_ok());
        assert!(peer("persistent_keepalive_interval=off").is_err());
    }

    #[test]
    fn switches_are_true_or_wrong() {
        assert!(device("replace_peers=true").is_ok() && device("replace_peers=false").is_err());
        for key in ["update_only", "remove", "replace_allowed_ips"] {
            assert!(peer(&format!("{key}=true")).is_ok(), "{key}");
            assert!(peer(&format!("{key}=1")).is_err(), "{key}");
        }
        assert!(peer("protocol_version=1").is_ok() && peer("protocol_version=2").is_err());
    }

    #[test]
    fn endpoints_may_have_a_scope_by_number_or_name() {
        assert_eq!(
            endpoint("192.0.2.1:51820"),
            Some(([192, 0, 2, 1], 51820).into())
        );
        let Some(SocketAddr::V6(plain)) = endpoint("[2001:db8::1]:1") else {
            panic!("no v6")
        };
        assert_eq!((plain.port(), plain.scope_id()), (1, 0));
        for (text, scope) in [("[fe80::1%eth0]:9", 7), ("[fe80::1%3]:9", 3)] {
            let Some(SocketAddr::V6(scoped)) = endpoint(text) else {
                panic!("{text}")
            };
            assert_eq!((scoped.port(), scoped.scope_id()), (9, scope), "{text}");
        }
        for text in [
            "",
            "192.0.2.1",
            "192.0.2.1:",
            "192.0.2.1:65536",
            "192.0.2.01:1",
            "[192.0.2.1]:1",
            "2001:db8::1:1:2:3:4:5:6:7",
            "[fe80::1%eth9]:9",
            "[fe80::1%]:9",
            "[fe80::1%eth0]:+9",
            "host.example:1",
            "[fe80::1%eth0:9",
        ] {
            assert_eq!(endpoint(text), None, "{text}");
        }
    }

    #[test]
    fn allowed_ips_are_ranges_and_can_be_taken_back() {
        for (text, prefix) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("-10.0.0.1/32", "-10.0.0.1/32"),
            ("2001:db8::1/64", "2001:db8::/64"),
            ("-::/0", "-::/0"),
        ] {
            assert_eq!(allowed(text).as_deref(), Some(prefix), "{text}");
        }
        for text in [
            "",
            "-",
            "/",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/-8",
            "10.0.0/8",
            "fe80::1%eth0/64",
            "--10.0.0.0/8",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(allowed(text), None, "{text}");
        }
    }

    #[test]
    fn errors_and_logs_do_not_show_keys() {
        let shown = format!(
            "{:?} {:?} {:?} {}",
            device(&format!("private_key={KEY}")),
            peer(&format!("preshared_key={KEY}")),
            device(&format!("private_kee={KEY}")),
            device(&format!("private_key={KEY}0")).unwrap_err(),
        );
        assert!(!shown.contains("e84b"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in prop::collection::vec(any::<u8>(), 0..200), of_peer: bool) {
            let _ = parse(&line, of_peer, &scopes);
        }

        #[test]
        fn no_value_is_too_odd(
            key in prop::sample::select(vec!["private_key", "listen_port", "fwmark", "replace_peers", "public_key", "update_only",
                "remove", "preshared_key", "endpoint", "persistent_keepalive_interval", "replace_allowed_ips", "allowed_ip",
                "protocol_version"]),
            value in prop::collection::vec(any::<u8>(), 0..100),
            of_peer: bool,
        ) {
            let _ = parse(&[key.as_bytes(), b"=", &value].concat(), of_peer, &scopes);
        }

        #[test]
        fn what_display_writes_is_read_again(bits: u128, v4: bool, length in 0u8..=128, port: u16) {
            let address: IpAddr = if v4 {
                IpAddr::from(((bits >> 96) as u32).to_be_bytes())
            } else {
                IpAddr::from(bits.to_be_bytes())
            };
            if let Some(prefix) = Prefix::new(address, length) {
                let shown = prefix.to_string();
                prop_assert_eq!(allowed(&shown), Some(shown));
            }
            let socket = SocketAddr::new(address, port);
            prop_assert_eq!(endpoint(&socket.to_string()), Some(socket));
        }
    }
}
