//! Length of a card's receive rings, by the kernel's ethtool family of generic netlink. Value: packets, a number.
//!
//! Most drivers stop the card for the change: packets are lost for a moment, and some links go down for seconds.

use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::netlink::{Attributes, Netlink, c_text, push_attribute, read_u16, read_u32};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

/// The family that knows the numbers of the others (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Command, version and two reserved bytes.
const GENLMSGHDR: usize = 4;

// linux/ethtool_netlink.h
const ETHTOOL_MSG_RINGS_GET: u8 = 15;
const ETHTOOL_MSG_RINGS_SET: u8 = 16;
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_RINGS_RX_MAX: u16 = 2;
const ETHTOOL_A_RINGS_RX: u16 = 6;
const NESTED: u16 = 0x8000;

/// Longer than any card's.
const LONGEST: u32 = 1 << 20;

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    Ok(Ethtool::open()?.ring(interface)?.now.into())
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let wanted = packets(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "packets, a number from 1 to 1048576",
    })?;
    let mut ethtool = Ethtool::open()?;
    let ring = ethtool.ring(interface)?;
    // A change to the same length would stop the card for nothing.
    if ring.now == wanted {
        return Ok(());
    }
    if ring.most.is_some_and(|most| wanted > most) {
        return Err(SettingError::Refused {
            setting: describe(interface),
            why: format!(
                "{wanted} packets are more than the card's {}",
                ring.most.unwrap_or_default()
            ),
        });
    }
    let mut body = request(ETHTOOL_MSG_RINGS_SET, link(interface)?.index);
    push_attribute(&mut body, ETHTOOL_A_RINGS_RX, &wanted.to_ne_bytes());
    ethtool
        .netlink
        .change(ethtool.family, 0, &body)
        .map_err(|source| refused(interface, "changing", source))?;
    let got = ethtool.ring(interface)?.now;
    if got == wanted {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(interface),
            wanted: wanted.to_string(),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    match (check_name(interface), packets(value)) {
        (Ok(()), Some(packets)) => {
            vec![format!("ethtool -G {} rx {packets}", shell_word(interface))]
        }
        _ => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-receive-ring", interface = interface)
}

pub(crate) fn persistence(interface: &str, value: &Value) -> String {
    say!(
        "settings-receive-ring-persistence",
        interface = interface,
        value = value.to_string()
    )
}

/// A ring's length in packets, and the longest, where the driver tells.
struct Ring {
    now: u32,
    most: Option<u32>,
}

struct Ethtool {
    netlink: Netlink,
    family: u16,
}

impl Ethtool {
    fn open() -> Result<Self, SettingError> {
        let mut netlink = Netlink::open_generic()?;
        let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        push_attribute(&mut body, CTRL_ATTR_FAMILY_NAME, &c_text("ethtool"));
        let failed = |source| {
            SettingError::system(
                "asking the kernel for its ethtool interface (Linux 5.6)",
                source,
            )
        };
        let answer = netlink.get(GENL_ID_CTRL, &body).map_err(failed)?;
        let family = answer
            .get(GENLMSGHDR..)
            .and_then(|attributes| Attributes(attributes).find(CTRL_ATTR_FAMILY_ID))
            .and_then(|id| read_u16(id, 0))
            .ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
        Ok(Self { netlink, family })
    }

    fn ring(&mut self, interface: &str) -> Result<Ring, SettingError> {
        let body = request(ETHTOOL_MSG_RINGS_GET, link(interface)?.index);
        let answer = self
            .netlink
            .get(self.family, &body)
            .map_err(|source| refused(interface, "reading", source))?;
        parse(&answer).ok_or_else(|| no_ring(interface))
    }
}

/// A request about one link.
fn request(command: u8, index: i32) -> Vec<u8> {
    let mut header = Vec::new();
    push_attribute(
        &mut header,
        ETHTOOL_A_HEADER_DEV_INDEX,
        &index.to_ne_bytes(),
    );
    let mut body = vec![command, 1, 0, 0];
    push_attribute(&mut body, ETHTOOL_A_HEADER | NESTED, &header);
    body
}

fn parse(answer: &[u8]) -> Option<Ring> {
    let number = |kind| {
        let attributes = answer.get(GENLMSGHDR..)?;
        read_u32(Attributes(attributes).find(kind)?, 0)
    };
    Some(Ring {
        now: number(ETHTOOL_A_RINGS_RX)?,
        most: number(ETHTOOL_A_RINGS_RX_MAX),
    })
}

fn refused(interface: &str, doing: &str, source: std::io::Error) -> SettingError {
    match source.raw_os_error() {
        // EOPNOTSUPP
        Some(95) => no_ring(interface),
        _ => SettingError::system(format!("{doing} the receive ring of {interface}"), source),
    }
}

fn no_ring(interface: &str) -> SettingError {
    SettingError::Refused {
        setting: describe(interface),
        why: "its driver has no ring whose length could be told or changed".to_owned(),
    }
}

fn packets(value: &Value) -> Option<u32> {
    let packets = u32::try_from(value.as_u64()?).ok()?;
    (1..=LONGEST).contains(&packets).then_some(packets)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_are_numbers_of_packets() {
        assert_eq!(packets(&json!(512)), Some(512));
        for bad in [
            json!(0),
            json!(-1),
            json!("512"),
            json!(null),
            json!(1 << 21),
        ] {
            assert_eq!(packets(&bad), None, "{bad}");
        }
        assert_eq!(
            shell("eth0", &json!(4096)),
            ["ethtool -G eth0 rx 4096".to_owned()]
        );
        assert!(shell("eth0; x", &json!(4096)).is_empty());
    }

    #[test]
    fn an_answer_without_a_ring_is_none() {
        let mut answer = vec![0; GENLMSGHDR];
        assert!(parse(&answer).is_none() && parse(&[]).is_none());
        push_attribute(&mut answer, ETHTOOL_A_RINGS_RX, &256_u32.to_ne_bytes());
        let ring = parse(&answer).unwrap();
        assert_eq!((ring.now, ring.most), (256, None));
    }

    #[test]
    fn a_link_without_a_card_has_none() {
        assert!(matches!(read("lo"), Err(SettingError::Refused { .. })));
        assert!(matches!(read("none0"), Err(SettingError::NotFound { .. })));
    }

    /// Where the tests run on a machine with a card, it is only read.
    #[test]
    fn a_card_tells_its_ring() {
        let cards = std::fs::read_dir("/sys/class/net").into_iter().flatten();
        for card in cards.flatten() {
            if let Some(name) = card.file_name().to_str()
                && card.path().join("device").exists()
                && let Ok(ring) = read(name)
            {
                assert!(packets(&ring).is_some(), "{name}: {ring}");
                // The length it has is no change.
                write(name, &ring).unwrap();
            }
        }
    }
}
