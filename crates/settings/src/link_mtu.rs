//! MTU of a link, by rtnetlink. Value: bytes, a number.

use wirespeed_words::say;

use crate::link::{IFLA_MTU, check_name, link, link_body};
use crate::netlink::{Netlink, RTM_NEWLINK, push_attribute};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    Ok(link(interface)?.mtu.into())
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let mtu = bytes(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "bytes, a number from 68 to 65535",
    })?;
    let mut body = link_body(link(interface)?.index);
    push_attribute(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    Netlink::open()?
        .change(RTM_NEWLINK, 0, &body)
        .map_err(|source| {
            SettingError::system(format!("setting the MTU of {interface} to {mtu}"), source)
        })?;
    let got = link(interface)?.mtu;
    if got == mtu {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(interface),
            wanted: mtu.to_string(),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    match (check_name(interface), bytes(value)) {
        (Ok(()), Some(mtu)) => vec![format!(
            "ip link set dev {} mtu {mtu}",
            shell_word(interface)
        )],
        _ => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-link-mtu", interface = interface)
}

pub(crate) fn persistence(interface: &str, value: &Value) -> String {
    say!(
        "settings-link-mtu-persistence",
        interface = interface,
        connection = shell_word(interface),
        value = value.to_string()
    )
}

fn bytes(value: &Value) -> Option<u32> {
    let bytes = u32::try_from(value.as_u64()?).ok()?;
    (68..=65535).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(bytes(&json!(1420)), Some(1420));
        for bad in [
            json!(67),
            json!(65536),
            json!(-1),
            json!("1420"),
            json!(null),
            json!(1420.5),
        ] {
            assert_eq!(bytes(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_shell_form_is_one_ip_command() {
        assert_eq!(shell("wg0", &json!(1340)), ["ip link set dev wg0 mtu 1340"]);
        assert!(shell("wg0; reboot", &json!(1340)).is_empty());
    }
}
