//! Devices of a userspace WireGuard, by the text protocol of its UAPI socket
//! (<https://www.wireguard.com/xplatform/#configuration-protocol>).

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};
use zeroize::{Zeroize, Zeroizing};

use crate::wireguard::{Device, handshake_age, key_text, peer_with_key};

/// Where the daemons put their sockets; one directory for all network namespaces of a machine.
const SOCKET_DIRECTORY: &str = "/var/run/wireguard";
/// Longest wait for one whole answer.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Most bytes of one answer (a peer takes about 400; this is room for 80,000).
const SIZE_LIMIT: usize = 32 << 20;

/// Why a userspace device could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UapiError {
    /// Connecting, writing or reading failed.
    #[error(
        "could not ask the daemon behind {socket}: {source} (is it running, and are you root?)"
    )]
    Exchange { socket: String, source: io::Error },
    /// No whole answer in time.
    #[error("the daemon behind {socket} gave no whole answer within 1 s")]
    TimedOut { socket: String },
    /// An endless answer.
    #[error("the daemon behind {socket} answered more than 32 MiB")]
    TooLong { socket: String },
    /// The daemon reported an error.
    #[error("the daemon refused to describe the device: errno {0}")]
    Refused(i64),
    /// Not the UAPI's text.
    #[error("the daemon's answer is not UAPI text: {0}")]
    Rubbish(String),
}

/// A device, and the process that opened its socket as far as the kernel tells.
pub(crate) struct Answer {
    pub(crate) device: Device,
    /// `SO_PEERCRED` of the connection: the process that called `listen`, which may have ended since (a daemon
    /// that forks into the background), or be invisible from this process namespace (then `None`).
    pub(crate) listener: Option<u32>,
}

/// Is there a socket for an interface of this name? An error when the directory may not be looked into.
pub(crate) fn has_socket(name: &str) -> io::Result<bool> {
    socket_path(name).try_exists()
}

/// Reads the device `name`; `now` is Unix time in seconds.
pub(crate) fn read(name: &str, now: f64) -> Result<Answer, UapiError> {
    let path = socket_path(name);
    let socket = path.display().to_string();
    let deadline = Instant::now() + TIME_LIMIT;
    let failed = |source: io::Error| {
        let late = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        if late.contains(&source.kind()) {
            UapiError::TimedOut {
                socket: socket.clone(),
            }
        } else {
            UapiError::Exchange {
                socket: socket.clone(),
                source,
            }
        }
    };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_write_timeout(Some(TIME_LIMIT)).map_err(failed)?;
    stream.write_all(b"get=1\n\n").map_err(failed)?;
    let listener = getsockopt(&stream, PeerCredentials)
        .ok()
        .and_then(|credentials| u32::try_from(credentials.pid()).ok())
        .filter(|pid| *pid != 0);

    let mut answer = Zeroizing::new(Vec::with_capacity(64 << 10));
    let mut chunk = Zeroizing::new([0_u8; 16 << 10]);
    while !answer.ends_with(b"\n\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(UapiError::TimedOut { socket });
        }
        stream.set_read_timeout(Some(left)).map_err(failed)?;
        match stream.read(&mut chunk[..]) {
            Ok(0) => break,
            Ok(count) => append(&mut answer, &chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if answer.len() > SIZE_LIMIT {
            return Err(UapiError::TooLong { socket });
        }
    }
    Ok(Answer {
        device: parse(&answer, now)?,
        listener,
    })
}

fn socket_path(name: &str) -> PathBuf {
    PathBuf::from(SOCKET_DIRECTORY).join(format!("{name}.sock"))
}

/// Appends without leaving a copy of the keys behind in memory given back to the allocator.
fn append(answer: &mut Zeroizing<Vec<u8>>, bytes: &[u8]) {
    if answer.capacity() - answer.len() < bytes.len() {
        let mut larger = Zeroizing::new(Vec::with_capacity(answer.capacity() * 2 + bytes.len()));
        larger.extend_from_slice(answer);
        *answer = larger;
    }
    answer.extend_from_slice(bytes);
}

/// Reads the answer to `get=1`. Private and preshared keys are not kept: of the private key only the public one
/// is derived. Keys this program does not know are skipped, as the protocol asks.
pub(crate) fn parse(answer: &[u8], now: f64) -> Result<Device, UapiError> {
    let text = std::str::from_utf8(answer).map_err(|error| {
        UapiError::Rubbish(format!("not UTF-8 at byte {}", error.valid_up_to()))
    })?;
    let mut device = Device::default();
    let mut handshake = (0_i64, 0_i64);
    let mut ended = false;
    for line in text.lines() {
        if line.is_empty() {
            break;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(UapiError::Rubbish("a line has no '='".to_owned()));
        };
        if key == "errno" {
            ended = true;
            match number::<i64>(key, value)? {
                0 => continue,
                errno => return Err(UapiError::Refused(errno)),
            }
        }
        if key == "public_key" {
            let mut bytes = key_bytes(key, value)?;
            device.peers.push(peer_with_key(key_text(&bytes)));
            bytes.zeroize();
            handshake = (0, 0);
            continue;
        }
        let Some(peer) = device.peers.last_mut() else {
            match key {
                "private_key" => {
                    let private = Zeroizing::new(key_bytes(key, value)?);
                    device.public_key = private
                        .iter()
                        .any(|byte| *byte != 0)
                        .then(|| key_text(&x25519(*private, X25519_BASEPOINT_BYTES)));
                }
                "listen_port" => {
                    device.listen_port = Some(number(key, value)?).filter(|port| *port != 0);
                }
                "fwmark" => device.fwmark = number(key, value)?,
                _ => {}
            }
            continue;
        };
        match key {
            "endpoint" => peer.endpoint = Some(endpoint(value)?),
            "allowed_ip" => peer.allowed_ips.push(value.to_owned()),
            "persistent_keepalive_interval" => peer.keepalive = number(key, value)?,
            "rx_bytes" => peer.rx_bytes = number(key, value)?,
            "tx_bytes" => peer.tx_bytes = number(key, value)?,
            "last_handshake_time_sec" => handshake.0 = number(key, value)?,
            "last_handshake_time_nsec" => handshake.1 = number(key, value)?,
            _ => {}
        }
        if key.starts_with("last_handshake_time_") {
            peer.handshake_age = handshake_age(now, handshake.0, handshake.1);
        }
    }
    if !ended {
        return Err(UapiError::Rubbish(
            "it ends before its errno line".to_owned(),
        ));
    }
    Ok(device)
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, UapiError> {
    value
        .parse()
        .map_err(|_| UapiError::Rubbish(format!("{key} is not a number in its range")))
}

/// 64 hexadecimal digits. The value itself is never shown: it may be a secret.
fn key_bytes(key: &str, value: &str) -> Result<[u8; 32], UapiError> {
    let wrong = || UapiError::Rubbish(format!("{key} is not 64 hexadecimal digits"));
    let digits = value.as_bytes();
    if digits.len() != 64 {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |ascii: u8| char::from(ascii).to_digit(16).ok_or_else(wrong);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Ok(bytes)
}

/// `192.0.2.1:51820`, `[2001:db8::1]:51820`, or a link-local address with its zone, `[fe80::1%eth0]:51820`
/// (the zone is dropped when it is a name: it has no place in a socket address).
fn endpoint(value: &str) -> Result<SocketAddr, UapiError> {
    value
        .parse()
        .ok()
        .or_else(|| {
            let (start, rest) = value.split_once('%')?;
            let (_, end) = rest.split_once(']')?;
            format!("{start}]{end}").parse().ok()
        })
        .ok_or_else(|| UapiError::Rubbish("an endpoint is not ADDRESS:PORT".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const PRIVATE: &str = "a8abababababababababababababababababababababababababababababab6b";

    fn answer(body: &str) -> String {
        format!("{body}errno=0\n\n")
    }

    /// `MeasureError::said` knows these by their words and says them in the reader's language.
    #[test]
    fn a_refusal_is_told_in_the_words_that_readers_know() {
        let (socket, refused) = ("/run/wg0.sock".to_owned(), || {
            io::Error::from_raw_os_error(13)
        });
        let not_asked = UapiError::Exchange {
            socket: socket.clone(),
            source: refused(),
        };
        assert_eq!(
            not_asked.to_string(),
            "could not ask the daemon behind /run/wg0.sock: Permission denied (os error 13) (is it running, and are you root?)"
        );
        assert_eq!(
            UapiError::TimedOut { socket }.to_string(),
            "the daemon behind /run/wg0.sock gave no whole answer within 1 s"
        );
        let by_the_kernel = crate::netlink::NetlinkError::Refused {
            what: "its WireGuard devices",
            source: refused(),
        };
        assert_eq!(
            by_the_kernel.to_string(),
            "the kernel refused to tell its WireGuard devices: Permission denied (os error 13)"
        );
    }

    #[test]
    fn a_device_with_two_peers() {
        let key = |digit: &str| digit.repeat(64);
        let text = answer(&format!(
            "private_key={PRIVATE}\nlisten_port=51820\nfwmark=51820\npublic_key={}\npreshared_key={}\n\
             protocol_version=1\nendpoint=192.0.2.7:1234\nlast_handshake_time_sec=990\n\
             last_handshake_time_nsec=500000000\ntx_bytes=5\nrx_bytes=6\npersistent_keepalive_interval=25\n\
             allowed_ip=10.0.0.2/32\nallowed_ip=fd00::2/128\npublic_key={}\n\
             endpoint=[fe80::1%eth0]:51820\nlast_handshake_time_sec=0\nlast_handshake_time_nsec=0\n",
            key("1"),
            key("9"),
            key("2"),
        ));
        let device = parse(text.as_bytes(), 1000.0).unwrap();
        assert_eq!(device.listen_port, Some(51820));
        assert_eq!(device.fwmark, 51820);
        assert_eq!(device.peers.len(), 2);
        let first = &device.peers[0];
        assert_eq!(first.handshake_age, Some(9.5));
        assert_eq!(first.allowed_ips, ["10.0.0.2/32", "fd00::2/128"]);
        assert_eq!(
            (first.rx_bytes, first.tx_bytes, first.keepalive),
            (6, 5, 25)
        );
        assert_eq!(first.endpoint, Some("192.0.2.7:1234".parse().unwrap()));
        assert_eq!(
            device.peers[1].endpoint,
            Some("[fe80::1]:51820".parse().unwrap())
        );
        assert_eq!(device.peers[1].handshake_age, None);
    }

    #[test]
    fn the_own_public_key_is_derived_as_wg_pubkey_does() {
        let private = "77076d0a7318a57d3c16c17251b26645df4c2f92ebc0992ac177fba51db92c2a";
        let device = parse(answer(&format!("private_key={private}\n")).as_bytes(), 0.0).unwrap();
        assert_eq!(
            device.public_key.as_deref(),
            Some("+KlTWi0v9gXo4UTVT071xiMTogVduyH93T/ZwpnrAV0=")
        );
    }

    #[test]
    fn a_device_without_a_key_has_no_public_key() {
        let text = answer(&format!("private_key={}\nlisten_port=0\n", "0".repeat(64)));
        let device = parse(text.as_bytes(), 0.0).unwrap();
        assert_eq!((device.public_key, device.listen_port), (None, None));
    }

    #[test]
    fn an_error_or_a_cut_answer_is_an_error() {
        assert!(matches!(
            parse(b"errno=1\n\n", 0.0),
            Err(UapiError::Refused(1))
        ));
        assert!(matches!(
            parse(b"listen_port=1\n", 0.0),
            Err(UapiError::Rubbish(_))
        ));
        assert!(matches!(
            parse(b"hello\n\n", 0.0),
            Err(UapiError::Rubbish(_))
        ));
    }

    #[test]
    fn a_refused_secret_is_not_shown() {
        let message = parse(b"private_key=secret\nerrno=0\n\n", 0.0)
            .unwrap_err()
            .to_string();
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn two_thousand_peers() {
        let mut body = format!("private_key={PRIVATE}\n");
        for peer in 0..2000 {
            writeln!(
                body,
                "public_key={peer:064x}\nallowed_ip=10.0.{}.{}/32\nrx_bytes={peer}",
                peer / 250,
                peer % 250
            )
            .unwrap();
        }
        let device = parse(answer(&body).as_bytes(), 0.0).unwrap();
        assert_eq!(device.peers.len(), 2000);
        assert_eq!(device.peers[1999].rx_bytes, 1999);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = parse(&bytes, 0.0);
        }

        #[test]
        fn any_lines_are_refused_or_read(lines in proptest::collection::vec(
            ("(private_key|public_key|preshared_key|endpoint|allowed_ip|listen_port|fwmark|rx_bytes|\
              last_handshake_time_sec|last_handshake_time_nsec|errno|other)", "[0-9a-f:.\\[\\]%/-]{0,70}"),
            0..20,
        )) {
            let mut text = String::new();
            for (key, value) in lines {
                writeln!(text, "{key}={value}").unwrap();
            }
            if let Ok(device) = parse(text.as_bytes(), 1e9) {
                for peer in device.peers {
                    prop_assert!(peer.handshake_age.is_none_or(|age| age >= 0.0));
                }
            }
        }
    }
}
