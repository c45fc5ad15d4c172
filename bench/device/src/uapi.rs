//! Configuration over the control socket every userspace WireGuard has
//! (<https://www.wireguard.com/xplatform/#configuration-protocol>): the same bytes for all of them.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::BenchError;

/// How long a daemon may take for an answer; ten thousand peers take some of them seconds.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const ANSWER_BYTES: usize = 64 << 20;

/// Where a daemon listens.
pub(crate) fn socket(interface: &str) -> PathBuf {
    PathBuf::from(format!("/var/run/wireguard/{interface}.sock"))
}

/// A request in the making.
pub(crate) struct Request(String);

impl Request {
    pub(crate) fn set(private_key: &[u8], port: u16) -> Self {
        Self(format!(
            "set=1\nprivate_key={}\nlisten_port={port}\nreplace_peers=true\n",
            hex(private_key)
        ))
    }

    pub(crate) fn peer(
        &mut self,
        public_key: &[u8],
        endpoint: Option<SocketAddrV4>,
        keepalive: u16,
        allowed: Ipv4Addr,
    ) {
        let text = &mut self.0;
        let _ = write!(
            text,
            "public_key={}\nreplace_allowed_ips=true\n",
            hex(public_key)
        );
        if let Some(endpoint) = endpoint {
            let _ = writeln!(text, "endpoint={endpoint}");
        }
        if keepalive > 0 {
            let _ = writeln!(text, "persistent_keepalive_interval={keepalive}");
        }
        let _ = writeln!(text, "allowed_ip={allowed}/32");
    }

    /// Sends it, and waits for the answer; how long both took.
    pub(crate) fn send(mut self, program: &str, interface: &str) -> Result<Duration, BenchError> {
        self.0.push('\n');
        exchange(program, interface, &self.0).map(|(took, _)| took)
    }
}

/// Asks for everything; how long the answer took, and how many bytes it has.
pub(crate) fn get(program: &str, interface: &str) -> Result<(Duration, usize), BenchError> {
    exchange(program, interface, "get=1\n\n")
}

fn exchange(
    program: &str,
    interface: &str,
    request: &str,
) -> Result<(Duration, usize), BenchError> {
    let failed = || BenchError::system(format!("talk to {program} on its control socket"));
    let begun = Instant::now();
    let mut stream = UnixStream::connect(socket(interface)).map_err(failed())?;
    stream
        .set_read_timeout(Some(ANSWERS_WITHIN))
        .map_err(failed())?;
    stream
        .set_write_timeout(Some(ANSWERS_WITHIN))
        .map_err(failed())?;
    stream.write_all(request.as_bytes()).map_err(failed())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16 << 10];
    // Some close the connection after the answer, some don't.
    while !answer.ends_with(b"\n\n") && answer.len() < ANSWER_BYTES {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(BenchError::Silent {
                    program: program.to_owned(),
                    limit: ANSWERS_WITHIN,
                });
            }
            Err(error) => return Err(failed()(error)),
        }
    }
    let took = begun.elapsed();
    match errno(&answer) {
        Some("0") => Ok((took, answer.len())),
        errno => Err(BenchError::Refused {
            program: program.to_owned(),
            errno: errno.unwrap_or("missing from its answer").to_owned(),
        }),
    }
}

fn errno(answer: &[u8]) -> Option<&str> {
    let tail = &answer[answer.len().saturating_sub(64)..];
    let tail = std::str::from_utf8(tail).ok()?;
    tail.lines()
        .rev()
        .find_map(|line| line.strip_prefix("errno="))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_what_the_protocol_says() {
        let mut request = Request::set(&[1; 2], 51_820);
        request.peer(
            &[0xab; 2],
            Some("10.0.0.1:7".parse().unwrap()),
            25,
            Ipv4Addr::new(10, 0, 0, 2),
        );
        request.peer(&[2; 2], None, 0, Ipv4Addr::new(10, 0, 0, 3));
        assert_eq!(
            request.0,
            "set=1\nprivate_key=0101\nlisten_port=51820\nreplace_peers=true\n\
             public_key=abab\nreplace_allowed_ips=true\nendpoint=10.0.0.1:7\npersistent_keepalive_interval=25\nallowed_ip=10.0.0.2/32\n\
             public_key=0202\nreplace_allowed_ips=true\nallowed_ip=10.0.0.3/32\n"
        );
    }

    #[test]
    fn the_last_errno_counts() {
        assert_eq!(errno(b"errno=0\n\n"), Some("0"));
        assert_eq!(errno(b"listen_port=1\nerrno=-22\n\n"), Some("-22"));
        assert_eq!(errno(b""), None);
    }
}
