//! Cores that an interrupt may go to. Value: text, a list like `0-3,8`.

use std::fs;
use std::path::{Path, PathBuf};

use wirespeed_words::say;

use crate::{SettingError, Value};

/// Cores beyond any machine's.
const MOST: u32 = 1 << 14;

pub(crate) fn read(number: u32) -> Result<Value, SettingError> {
    read_in(Path::new("/proc/irq"), number)
}

pub(crate) fn write(number: u32, value: &Value) -> Result<(), SettingError> {
    write_in(Path::new("/proc/irq"), number, value)
}

fn read_in(directory: &Path, number: u32) -> Result<Value, SettingError> {
    let text = fs::read_to_string(file(directory, number)).map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound {
            SettingError::NotFound {
                what: format!("interrupt {number}"),
                hint: "see /proc/interrupts; numbers change when a driver is loaded anew"
                    .to_owned(),
            }
        } else {
            SettingError::system(format!("reading the cores of interrupt {number}"), source)
        }
    })?;
    Ok(Value::String(text.trim().to_owned()))
}

fn write_in(directory: &Path, number: u32, value: &Value) -> Result<(), SettingError> {
    let wanted = cores(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(number),
        value: value.to_string(),
        expected: "a list of cores as text, like \"0-3,8\"",
    })?;
    // Tells one that is gone from one that can't be changed.
    read_in(directory, number)?;
    fs::write(file(directory, number), format!("{}\n", list(&wanted))).map_err(|source| {
        if source.raw_os_error() == Some(5) {
            SettingError::Refused {
                setting: describe(number),
                why: "the kernel manages this interrupt itself and lets nobody move it".to_owned(),
            }
        } else {
            SettingError::system(format!("moving interrupt {number}"), source)
        }
    })?;
    let got = read_in(directory, number)?;
    if cores(&got).as_ref() == Some(&wanted) {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(number),
            wanted: list(&wanted),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(number: u32, value: &Value) -> Vec<String> {
    cores(value)
        .map(|cores| {
            format!(
                "echo {} > {}",
                list(&cores),
                file(Path::new("/proc/irq"), number).display()
            )
        })
        .into_iter()
        .collect()
}

pub(crate) fn describe(number: u32) -> String {
    say!("settings-interrupt-cores", number = number.to_string())
}

pub(crate) fn persistence(number: u32, value: &Value) -> String {
    let commands = shell(number, value);
    let Some(command) = commands.first() else {
        return say!("settings-nothing-to-keep");
    };
    say!(
        "settings-interrupt-cores-persistence",
        number = number.to_string(),
        command = command
    )
}

/// One form for lists that mean the same.
pub(crate) fn normal(value: &Value) -> Value {
    cores(value).map_or_else(|| value.clone(), |cores| Value::String(list(&cores)))
}

fn file(directory: &Path, number: u32) -> PathBuf {
    directory.join(number.to_string()).join("smp_affinity_list")
}

/// The cores of a list in ascending order; `None` when it is none, or empty.
fn cores(value: &Value) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in value.as_str()?.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| -> Option<u32> {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|core| digits && *core < MOST)
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cores.extend(first..=last);
        if cores.len() > MOST as usize {
            return None;
        }
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// `0-3,8`.
fn list(cores: &[u32]) -> String {
    cores
        .chunk_by(|a, b| a + 1 == *b)
        .filter_map(|run| match (run.first()?, run.last()?) {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}-{last}")),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_have_one_form() {
        assert_eq!(normal(&json!("3,0-1,2,8")), json!("0-3,8"));
        assert_eq!(normal(&json!(" 5\n")), json!("5"));
        for bad in ["", "x", "3-1", "0-99999", "1,,2", "-1", "+1", "0-3;reboot"] {
            assert_eq!(cores(&json!(bad)), None, "{bad}");
            assert!(shell(7, &json!(bad)).is_empty());
        }
        assert_eq!(
            shell(41, &json!("1,0")),
            ["echo 0-1 > /proc/irq/41/smp_affinity_list".to_owned()]
        );
        let line = "`echo 0-1 > /proc/irq/41/smp_affinity_list` at each start, ";
        assert!(persistence(41, &json!("1,0")).starts_with(line));
    }

    #[test]
    fn an_interrupt_is_moved_and_put_back() {
        let directory = std::env::temp_dir().join(format!("ws-irq-{}", std::process::id()));
        fs::create_dir_all(directory.join("41")).unwrap();
        fs::write(directory.join("41/smp_affinity_list"), "0-1\n").unwrap();
        assert_eq!(read_in(&directory, 41).unwrap(), json!("0-1"));
        write_in(&directory, 41, &json!("1")).unwrap();
        assert_eq!(read_in(&directory, 41).unwrap(), json!("1"));
        write_in(&directory, 41, &json!("0-1")).unwrap();
        let missing = write_in(&directory, 42, &json!("1"));
        fs::remove_dir_all(&directory).unwrap();
        assert!(matches!(missing, Err(SettingError::NotFound { .. })));
    }
}
