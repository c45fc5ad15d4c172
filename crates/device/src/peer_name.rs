//! How peers are called in logs and statistics: by their public keys, as `wg` shows them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wirespeed_protocol::PublicKey;

/// The whole key in base64.
pub(crate) fn long(key: &PublicKey) -> String {
    STANDARD.encode(key.as_bytes())
}

/// Enough of the key to tell peers apart in a log.
pub(crate) fn short(key: &PublicKey) -> String {
    let long = long(key);
    format!("{}…{}", &long[..4], &long[39..43])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_look_as_wg_shows_them() {
        let key = PublicKey::from_bytes(std::array::from_fn(|at| at as u8));
        assert_eq!(long(&key), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert_eq!(short(&key), "AAEC…dHh8");
    }
}
