//! One offload feature of a link, by its name in `ethtool -k`, by the kernel's ethtool family of generic netlink
//! (Linux 5.6). Value: true or false.

use std::io;

use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::netlink::{Attributes, Netlink, c_text, push_attribute, read_u16, text};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENL_HEADER: usize = 4;

const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const HEADER: u16 = 1;
const HEADER_DEV_INDEX: u16 = 1;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BITSET_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;
const NESTED: u16 = 0x8000;

/// Longest name of a feature.
const LONGEST: usize = 31;

pub(crate) fn read(interface: &str, feature: &str) -> Result<Value, SettingError> {
    check_feature(feature)?;
    let index = link(interface)?.index;
    let answer = Ethtool::open()?
        .ask(FEATURES_GET, &header(index))
        .map_err(|source| failed("reading", interface, feature, source))?;
    state(&answer, feature)
        .map(Value::Bool)
        .ok_or_else(|| SettingError::NotFound {
            what: format!("feature {feature} of {interface}"),
            hint: "see `ethtool -k` for the features this link can change".to_owned(),
        })
}

pub(crate) fn write(interface: &str, feature: &str, value: &Value) -> Result<(), SettingError> {
    check_feature(feature)?;
    let on = value.as_bool().ok_or_else(|| SettingError::BadValue {
        setting: describe(interface, feature),
        value: value.to_string(),
        expected: "true or false",
    })?;
    let index = link(interface)?.index;
    let mut body = header(index);
    push_attribute(
        &mut body,
        FEATURES_WANTED | NESTED,
        &one_feature(feature, on),
    );
    Ethtool::open()?
        .change(FEATURES_SET, &body)
        .map_err(|source| failed("writing", interface, feature, source))?;
    let got = read(interface, feature)?;
    if got == Value::Bool(on) {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(interface, feature),
            wanted: on.to_string(),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(interface: &str, feature: &str, value: &Value) -> Vec<String> {
    match (
        check_name(interface),
        check_feature(feature),
        value.as_bool(),
    ) {
        (Ok(()), Ok(()), Some(on)) => vec![format!(
            "ethtool -K {} {feature} {}",
            shell_word(interface),
            word(on)
        )],
        _ => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str, feature: &str) -> String {
    say!(
        "settings-link-offload",
        interface = interface,
        feature = feature
    )
}

pub(crate) fn persistence(interface: &str, feature: &str, value: &Value) -> String {
    say!(
        "settings-link-offload-persistence",
        interface = shell_word(interface),
        feature = feature,
        value = word(value.as_bool().unwrap_or_default())
    )
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Names of features are lower case words with hyphens; nothing else may reach a command.
fn check_feature(feature: &str) -> Result<(), SettingError> {
    let valid = (1..=LONGEST).contains(&feature.len())
        && !feature.starts_with('-')
        && feature
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if valid {
        Ok(())
    } else {
        Err(SettingError::NotFound {
            what: format!("feature {feature:?}"),
            hint: "a feature is named as `ethtool -k` shows it, like tx-udp-segmentation"
                .to_owned(),
        })
    }
}

struct Ethtool {
    netlink: Netlink,
    family: u16,
}

impl Ethtool {
    fn open() -> Result<Self, SettingError> {
        let mut netlink = Netlink::open_generic()?;
        let mut body = genl(CTRL_CMD_GETFAMILY);
        push_attribute(&mut body, CTRL_ATTR_FAMILY_NAME, &c_text("ethtool"));
        let family = netlink
            .get(GENL_ID_CTRL, &body)
            .and_then(|answer| {
                Attributes(answer.get(GENL_HEADER..).unwrap_or_default())
                    .find(CTRL_ATTR_FAMILY_ID)
                    .and_then(|id| read_u16(id, 0))
                    .ok_or_else(|| {
                        io::Error::new(io::ErrorKind::InvalidData, "no id of the family ethtool")
                    })
            })
            .map_err(|source| {
                SettingError::system("asking the kernel for its ethtool interface", source)
            })?;
        Ok(Self { netlink, family })
    }

    fn ask(&mut self, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        let answer = self
            .netlink
            .get(self.family, &[genl(command), attributes.to_vec()].concat())?;
        Ok(answer.get(GENL_HEADER..).unwrap_or_default().to_vec())
    }

    fn change(&mut self, command: u8, attributes: &[u8]) -> io::Result<()> {
        let body = [genl(command), attributes.to_vec()].concat();
        self.netlink.change(self.family, 0, &body)
    }
}

/// `struct genlmsghdr`.
fn genl(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

fn header(index: i32) -> Vec<u8> {
    let mut inner = Vec::new();
    push_attribute(&mut inner, HEADER_DEV_INDEX, &index.to_ne_bytes());
    let mut body = Vec::new();
    push_attribute(&mut body, HEADER | NESTED, &inner);
    body
}

/// A bit set with a mask, of one feature.
fn one_feature(feature: &str, on: bool) -> Vec<u8> {
    let mut bit = Vec::new();
    push_attribute(&mut bit, BIT_NAME, &c_text(feature));
    if on {
        push_attribute(&mut bit, BIT_VALUE, &[]);
    }
    let mut bits = Vec::new();
    push_attribute(&mut bits, BITSET_BIT | NESTED, &bit);
    let mut set = Vec::new();
    push_attribute(&mut set, BITSET_BITS | NESTED, &bits);
    set
}

/// On or off; `None` when the link can neither change it nor has it on.
pub(crate) fn state(answer: &[u8], feature: &str) -> Option<bool> {
    let names = |set: u16| {
        let bits = Attributes(answer)
            .find(set)
            .and_then(|set| Attributes(set).find(BITSET_BITS))
            .unwrap_or_default();
        Attributes(bits).any(|(_, bit)| {
            Attributes(bit)
                .find(BIT_NAME)
                .is_some_and(|name| text(name) == feature)
        })
    };
    // The set of active features lists only those that are on.
    if names(FEATURES_ACTIVE) {
        Some(true)
    } else {
        names(FEATURES_HW).then_some(false)
    }
}

fn failed(doing: &str, interface: &str, feature: &str, source: io::Error) -> SettingError {
    SettingError::system(format!("{doing} {}", describe(interface, feature)), source)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shell_form_is_one_ethtool_command() {
        assert_eq!(
            shell("eth0", "rx-udp-gro-forwarding", &json!(true)),
            ["ethtool -K eth0 rx-udp-gro-forwarding on"]
        );
        assert!(shell("eth0", "gro; reboot", &json!(true)).is_empty());
        assert!(shell("eth0", "-K", &json!(true)).is_empty());
        assert!(shell("eth0", "rx-gro", &json!("on")).is_empty());
    }

    #[test]
    fn a_feature_is_on_off_or_not_there() {
        let mut answer = header(7);
        let named = |features: &[&str]| {
            let mut bits = Vec::new();
            for feature in features {
                let mut bit = Vec::new();
                push_attribute(&mut bit, BIT_NAME, &c_text(feature));
                push_attribute(&mut bits, BITSET_BIT, &bit);
            }
            let mut set = Vec::new();
            push_attribute(&mut set, BITSET_BITS, &bits);
            set
        };
        push_attribute(&mut answer, FEATURES_HW, &named(&["rx-gro", "rx-gro-list"]));
        push_attribute(&mut answer, FEATURES_ACTIVE, &named(&["rx-gro", "highdma"]));
        assert_eq!(state(&answer, "rx-gro"), Some(true));
        assert_eq!(state(&answer, "highdma"), Some(true));
        assert_eq!(state(&answer, "rx-gro-list"), Some(false));
        assert_eq!(state(&answer, "no-such"), None);
        assert_eq!(state(&answer[..9], "rx-gro"), None);
    }
}
