//! NAPI in kernel threads: `/sys/class/net/NAME/threaded`. Value: true or false.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    let path = file(interface)?;
    let text = fs::read_to_string(&path).map_err(|source| failed("reading", interface, source))?;
    match text.trim() {
        "0" => Ok(false.into()),
        "1" => Ok(true.into()),
        // A later kernel's busy polling in the thread: not ours to turn off.
        other => Err(SettingError::Refused {
            setting: describe(interface),
            why: format!("it has {other:?}, which is neither on nor off"),
        }),
    }
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let on = value.as_bool().ok_or_else(|| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "true or false",
    })?;
    let path = file(interface)?;
    OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(if on { b"1" } else { b"0" }))
        .map_err(|source| failed("writing", interface, source))?;
    let got = read(interface)?;
    if got == Value::Bool(on) {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(interface),
            wanted: on.to_string(),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    match (check_name(interface), value.as_bool()) {
        (Ok(()), Some(on)) => vec![format!(
            "echo {} > /sys/class/net/{}/threaded",
            u8::from(on),
            shell_word(interface)
        )],
        _ => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-threaded-napi", interface = interface)
}

pub(crate) fn persistence(interface: &str, value: &Value) -> String {
    say!(
        "settings-threaded-napi-persistence",
        value = u8::from(value.as_bool().unwrap_or_default()),
        interface = interface
    )
}

/// The interface's file, where `/sys` shows the caller's network namespace.
fn file(interface: &str) -> Result<PathBuf, SettingError> {
    let index = link(interface)?.index;
    let directory = PathBuf::from("/sys/class/net").join(interface);
    let shown = fs::read_to_string(directory.join("ifindex"))
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok());
    if shown == Some(index) {
        Ok(directory.join("threaded"))
    } else {
        Err(SettingError::Refused {
            setting: describe(interface),
            why: "/sys shows another network namespace here: run wirespeed by `ip netns exec`, which mounts the right one"
                .to_owned(),
        })
    }
}

fn failed(doing: &str, interface: &str, source: std::io::Error) -> SettingError {
    // The kernel's WireGuard has no NAPI instance before its first peer, and then says "not supported".
    if source.kind() == ErrorKind::Unsupported {
        SettingError::Refused {
            setting: describe(interface),
            why: "the interface has no NAPI: a tunnel has one from its first peer on, a userspace tunnel never"
                .to_owned(),
        }
    } else {
        SettingError::system(format!("{doing} {}", describe(interface)), source)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shell_form_is_one_echo() {
        assert_eq!(
            shell("wg0", &json!(true)),
            ["echo 1 > /sys/class/net/wg0/threaded"]
        );
        assert_eq!(
            shell("wg0", &json!(false)),
            ["echo 0 > /sys/class/net/wg0/threaded"]
        );
        assert!(shell("wg0", &json!(1)).is_empty());
        assert!(shell("../..", &json!(true)).is_empty());
    }

    #[test]
    fn values_are_on_or_off() {
        for bad in [json!(1), json!("1"), json!(null)] {
            assert!(matches!(
                write("lo", &bad),
                Err(SettingError::BadValue { .. })
            ));
        }
    }
}
