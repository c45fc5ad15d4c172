//! What both ways of reading a WireGuard device have in common.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Peer;

/// A device as its carrier describes it, without any secret.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Device {
    /// Own public key in base64.
    pub(crate) public_key: Option<String>,
    pub(crate) listen_port: Option<u16>,
    pub(crate) fwmark: u32,
    pub(crate) peers: Vec<Peer>,
}

/// A key as `wg` writes it.
pub(crate) fn key_text(key: &[u8; 32]) -> String {
    STANDARD.encode(key)
}

/// A peer of which only the key is known yet.
pub(crate) fn peer_with_key(public_key: String) -> Peer {
    Peer {
        public_key,
        endpoint: None,
        allowed_ips: Vec::new(),
        handshake_age: None,
        keepalive: 0,
        rx_bytes: 0,
        tx_bytes: 0,
    }
}

/// Seconds from a handshake (Unix time) to `now`; both zero means there was none. A clock that was set back gives 0.
pub(crate) fn handshake_age(now: f64, seconds: i64, nanoseconds: i64) -> Option<f64> {
    if seconds == 0 && nanoseconds == 0 {
        return None;
    }
    let at = seconds as f64 + nanoseconds as f64 / 1e9;
    Some((now - at).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::handshake_age;

    #[test]
    fn no_handshake_has_no_age() {
        assert_eq!(handshake_age(1000.0, 0, 0), None);
        assert_eq!(handshake_age(1000.0, 990, 500_000_000), Some(9.5));
        assert_eq!(handshake_age(1000.0, 2000, 0), Some(0.0));
    }
}
