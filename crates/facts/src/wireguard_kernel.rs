//! Devices of the kernel's WireGuard, by generic netlink.

use netlink_packet_wireguard::{
    WireguardAllowedIpAttr, WireguardAttribute, WireguardCmd, WireguardMessage, WireguardPeer,
    WireguardPeerAttribute,
};
use zeroize::Zeroize;

use crate::Peer;
use crate::generic_netlink::Family;
use crate::netlink::NetlinkError;
use crate::wireguard::{Device, handshake_age, key_text, peer_with_key};

/// Reads the device `name` of this network namespace; `now` is Unix time in seconds.
pub(crate) fn read(name: &str, now: f64) -> Result<Device, NetlinkError> {
    let request = WireguardMessage {
        cmd: WireguardCmd::GetDevice,
        attributes: vec![WireguardAttribute::IfName(name.to_owned())],
    };
    let answers = Family::open("wireguard", "its WireGuard devices")?.dump(request)?;
    Ok(device(answers, now))
}

/// Puts the messages of one device together. A device with many peers comes in several messages, and a peer
/// with many allowed IPs is continued in the next one under the same key.
pub(crate) fn device(messages: Vec<WireguardMessage>, now: f64) -> Device {
    let mut device = Device::default();
    for mut attribute in messages.into_iter().flat_map(|message| message.attributes) {
        match &mut attribute {
            WireguardAttribute::PublicKey(key) => device.public_key = Some(key_text(key)),
            WireguardAttribute::PrivateKey(key) => key.zeroize(),
            WireguardAttribute::ListenPort(port) => {
                device.listen_port = Some(*port).filter(|port| *port != 0);
            }
            WireguardAttribute::Fwmark(mark) => device.fwmark = *mark,
            WireguardAttribute::Peers(peers) => {
                for peer in peers {
                    add_peer(&mut device.peers, peer, now);
                }
            }
            _ => {}
        }
    }
    device
}

fn add_peer(peers: &mut Vec<Peer>, message: &mut WireguardPeer, now: f64) {
    let key = message.0.iter().find_map(|attribute| match attribute {
        WireguardPeerAttribute::PublicKey(key) => Some(key_text(key)),
        _ => None,
    });
    let Some(key) = key else {
        return;
    };
    if peers.last().is_none_or(|last| last.public_key != key) {
        peers.push(peer_with_key(key));
    }
    let Some(peer) = peers.last_mut() else {
        return;
    };
    for attribute in &mut message.0 {
        match attribute {
            WireguardPeerAttribute::PresharedKey(key) => key.zeroize(),
            WireguardPeerAttribute::Endpoint(endpoint) => peer.endpoint = Some(*endpoint),
            WireguardPeerAttribute::PersistentKeepalive(seconds) => peer.keepalive = *seconds,
            WireguardPeerAttribute::LastHandshake(at) => {
                peer.handshake_age = handshake_age(now, at.seconds, at.nano_seconds);
            }
            WireguardPeerAttribute::RxBytes(bytes) => peer.rx_bytes = *bytes,
            WireguardPeerAttribute::TxBytes(bytes) => peer.tx_bytes = *bytes,
            WireguardPeerAttribute::AllowedIps(prefixes) => peer
                .allowed_ips
                .extend(prefixes.iter().filter_map(|prefix| prefix_text(prefix))),
            _ => {}
        }
    }
}

fn prefix_text(attributes: &[WireguardAllowedIpAttr]) -> Option<String> {
    let address = attributes.iter().find_map(|attribute| match attribute {
        WireguardAllowedIpAttr::IpAddr(address) => Some(address),
        _ => None,
    })?;
    let length = attributes.iter().find_map(|attribute| match attribute {
        WireguardAllowedIpAttr::Cidr(length) => Some(length),
        _ => None,
    })?;
    Some(format!("{address}/{length}"))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netlink_packet_wireguard::{WireguardAllowedIp, WireguardTimeSpec};

    use super::*;

    fn prefix(address: [u8; 4], length: u8) -> WireguardAllowedIp {
        WireguardAllowedIp(vec![
            WireguardAllowedIpAttr::IpAddr(IpAddr::from(address)),
            WireguardAllowedIpAttr::Cidr(length),
        ])
    }

    #[test]
    fn a_peer_continued_in_the_next_message_is_one_peer() {
        let at = WireguardTimeSpec {
            seconds: 900,
            nano_seconds: 0,
        };
        let first = WireguardMessage {
            cmd: WireguardCmd::GetDevice,
            attributes: vec![
                WireguardAttribute::PrivateKey([7; 32]),
                WireguardAttribute::PublicKey([1; 32]),
                WireguardAttribute::ListenPort(51820),
                WireguardAttribute::Fwmark(0xca6c),
                WireguardAttribute::Peers(vec![WireguardPeer(vec![
                    WireguardPeerAttribute::PublicKey([2; 32]),
                    WireguardPeerAttribute::Endpoint("192.0.2.1:51820".parse().unwrap()),
                    WireguardPeerAttribute::LastHandshake(at),
                    WireguardPeerAttribute::PersistentKeepalive(25),
                    WireguardPeerAttribute::RxBytes(10),
                    WireguardPeerAttribute::TxBytes(20),
                    WireguardPeerAttribute::AllowedIps(vec![prefix([10, 0, 0, 2], 32)]),
                ])]),
            ],
        };
        let second = WireguardMessage {
            cmd: WireguardCmd::GetDevice,
            attributes: vec![WireguardAttribute::Peers(vec![
                WireguardPeer(vec![
                    WireguardPeerAttribute::PublicKey([2; 32]),
                    WireguardPeerAttribute::AllowedIps(vec![prefix([10, 1, 0, 0], 16)]),
                ]),
                WireguardPeer(vec![WireguardPeerAttribute::PublicKey([3; 32])]),
            ])],
        };
        let device = device(vec![first, second], 1000.0);
        assert_eq!(device.listen_port, Some(51820));
        assert_eq!(device.fwmark, 0xca6c);
        assert_eq!(device.peers.len(), 2);
        let peer = &device.peers[0];
        assert_eq!(peer.allowed_ips, ["10.0.0.2/32", "10.1.0.0/16"]);
        assert_eq!(peer.handshake_age, Some(100.0));
        assert_eq!((peer.rx_bytes, peer.tx_bytes, peer.keepalive), (10, 20, 25));
        assert_eq!(device.peers[1].handshake_age, None);
    }
}
