//! Prefixes as WireGuard and links write them.

use std::net::IpAddr;

/// `10.0.0.1/24` as address and length; without a length it is one address.
pub(crate) fn prefix(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    (length <= bits).then_some((address, length))
}

/// Is the address in the network?
pub(crate) fn contains((network, length): (IpAddr, u32), address: IpAddr) -> bool {
    let (network, address, bits) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (
            u128::from(network.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    // A shift by all 128 bits would overflow; everything is in a prefix of length 0.
    length == 0 || (network ^ address) >> (bits - length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_they_should() {
        let holds = |network: &str, address: &str| {
            contains(prefix(network).unwrap(), address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && holds("::/0", "fd12::1"));
        assert!(holds("10.0.0.1", "10.0.0.1") && !holds("10.0.0.1/32", "10.0.0.2"));
        for broken in ["10.0.0.1/33", "10.0.0/8", "::/129", "x", "10.0.0.1/-1"] {
            assert_eq!(prefix(broken), None, "{broken}");
        }
    }
}
