//! Links by name: what several knobs need to know of one before they turn.

use crate::SettingError;
use crate::netlink::{
    Attributes, Netlink, RTM_GETLINK, c_text, push_attribute, read_i32, read_u32, text,
};

const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFINFOMSG: usize = 16;

/// A link of the caller's network namespace.
pub(crate) struct Link {
    pub(crate) index: i32,
    /// Bytes.
    pub(crate) mtu: u32,
    /// `wireguard`, `tun`, …
    pub(crate) kind: Option<String>,
}

/// Looks a link up by name.
pub(crate) fn link(interface: &str) -> Result<Link, SettingError> {
    check_name(interface)?;
    let mut body = vec![0_u8; IFINFOMSG];
    push_attribute(&mut body, IFLA_IFNAME, &c_text(interface));
    let answer = Netlink::open()?.get(RTM_GETLINK, &body).map_err(|source| {
        if source.raw_os_error() == Some(19) {
            not_found(interface)
        } else {
            SettingError::system(
                format!("asking the kernel for interface {interface}"),
                source,
            )
        }
    })?;
    parse(&answer).ok_or_else(|| not_found(interface))
}

/// The head of an `ifinfomsg` request about a link.
pub(crate) fn link_body(index: i32) -> Vec<u8> {
    let mut body = vec![0_u8; IFINFOMSG];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

pub(crate) fn parse(answer: &[u8]) -> Option<Link> {
    let attributes = answer.get(IFINFOMSG..)?;
    Some(Link {
        index: read_i32(answer, 4)?,
        mtu: read_u32(Attributes(attributes).find(IFLA_MTU)?, 0)?,
        kind: Attributes(attributes)
            .find(IFLA_LINKINFO)
            .and_then(|info| Attributes(info).find(IFLA_INFO_KIND))
            .map(text),
    })
}

fn not_found(interface: &str) -> SettingError {
    SettingError::NotFound {
        what: format!("interface {interface}"),
        hint: "see `ip link` in this network namespace".to_owned(),
    }
}

/// Interface names are at most 15 bytes without `/` and blanks; nothing else may reach a path or a command.
pub(crate) fn check_name(interface: &str) -> Result<(), SettingError> {
    let valid = (1..=15).contains(&interface.len())
        && interface != "."
        && interface != ".."
        && interface
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':');
    if valid {
        Ok(())
    } else {
        Err(SettingError::NotFound {
            what: format!("interface {interface:?}"),
            hint: "an interface name has 1 to 15 printable characters, without `/` and `:`"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn interface_names_are_checked() {
        for good in ["wg0", "wg-office.1", "a"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "..", "a/b", "a b", "sixteen-bytes-xx", "wg0\n", "wg0:1"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
