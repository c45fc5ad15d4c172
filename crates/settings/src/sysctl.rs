//! A sysctl by its dotted name. Value: text as in its file, blanks between fields.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

use wirespeed_words::say;

use crate::{SettingError, Value};

const LONGEST: u64 = 4096;

pub(crate) fn read(name: &str) -> Result<Value, SettingError> {
    let path = path(name)?;
    let file = fs::File::open(&path).map_err(|source| unreachable(name, "reading", source))?;
    let mut text = String::new();
    file.take(LONGEST)
        .read_to_string(&mut text)
        .map_err(|source| SettingError::system(format!("reading sysctl {name}"), source))?;
    Ok(Value::String(fields(&text)))
}

pub(crate) fn write(name: &str, value: &Value) -> Result<(), SettingError> {
    let path = path(name)?;
    let wanted = text(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(name),
        value: value.to_string(),
        expected: "one line of text, or a number",
    })?;
    let mut file = OpenOptions::new()
        .write(true)
        .open(&path)
        .map_err(|source| unreachable(name, "writing", source))?;
    file.write_all(format!("{wanted}\n").as_bytes())
        .map_err(|source| {
            SettingError::system(format!("writing {wanted} to sysctl {name}"), source)
        })?;
    let got = read(name)?;
    if got == Value::String(wanted.clone()) {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(name),
            wanted,
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(name: &str, value: &Value) -> Vec<String> {
    match (path(name), text(value)) {
        (Ok(_), Some(text)) => vec![format!("sysctl -w {name}='{text}'")],
        _ => Vec::new(),
    }
}

pub(crate) fn describe(name: &str) -> String {
    say!("settings-sysctl", name = name)
}

pub(crate) fn persistence(name: &str, value: &Value) -> String {
    say!(
        "settings-sysctl-persistence",
        name = name,
        value = text(value).unwrap_or_else(|| value.to_string())
    )
}

/// The same text whatever blanks it was written with.
pub(crate) fn normal(value: &Value) -> Value {
    text(value).map_or_else(|| value.clone(), Value::String)
}

/// `net.ipv4.conf.eth0/1.rp_filter` is `/proc/sys/net/ipv4/conf/eth0.1/rp_filter`, as for sysctl(8).
fn path(name: &str) -> Result<PathBuf, SettingError> {
    let parts: Vec<String> = name.split('.').map(|part| part.replace('/', ".")).collect();
    let valid = parts.len() >= 2
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().any(|byte| byte != b'.')
                && part.bytes().all(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@')
                })
        });
    if !valid {
        return Err(SettingError::NotFound {
            what: format!("sysctl {name:?}"),
            hint: "a sysctl is named like net.ipv4.tcp_mtu_probing".to_owned(),
        });
    }
    Ok(parts
        .iter()
        .fold(PathBuf::from("/proc/sys"), |path, part| path.join(part)))
}

fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => fields(text),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let printable = text
        .bytes()
        .all(|byte| (0x20..0x7f).contains(&byte) && byte != b'\'');
    (!text.is_empty()
        && text.len() < LONGEST as usize
        && !value
            .as_str()
            .is_some_and(|text| text.trim().contains('\n'))
        && printable)
        .then_some(text)
}

fn fields(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unreachable(name: &str, doing: &str, source: std::io::Error) -> SettingError {
    let hidden = matches!(
        source.kind(),
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    );
    if hidden && !in_first_namespace() {
        SettingError::Refused {
            setting: describe(name),
            why: format!(
                "{doing} it failed ({source}) inside a network namespace; it is host-wide (hidden or read-only here): \
                 run wirespeed outside the namespace, in the host's own"
            ),
        }
    } else {
        SettingError::system(format!("{doing} sysctl {name}"), source)
    }
}

fn in_first_namespace() -> bool {
    let own = fs::read_link("/proc/thread-self/ns/net");
    let first = fs::read_link("/proc/1/ns/net");
    matches!((own, first), (Ok(own), Ok(first)) if own == first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_become_paths_below_proc_sys_only() {
        assert_eq!(
            path("net.ipv4.conf.eth0/1.rp_filter").unwrap(),
            PathBuf::from("/proc/sys/net/ipv4/conf/eth0.1/rp_filter")
        );
        for bad in [
            "",
            "net",
            "net..x",
            "../etc.passwd",
            "net.//.//.x",
            "net./.x",
            "net.a b",
            "/etc/passwd",
            "net.ipv4.",
        ] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn values_are_one_line() {
        assert_eq!(
            text(&json!("4096\t131072\t6291456\n")).unwrap(),
            "4096 131072 6291456"
        );
        assert_eq!(text(&json!(1)).unwrap(), "1");
        for bad in [
            json!(""),
            json!("a\nb"),
            json!(null),
            json!({}),
            json!("it's"),
        ] {
            assert_eq!(text(&bad), None, "{bad}");
        }
    }
}
