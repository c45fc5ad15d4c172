//! How the processor chooses its frequency. Value: the governor's name (text) where all clusters of cores have the same,
//! else one name for each cluster (`{"policy0": "powersave", …}`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wirespeed_words::say;

use crate::{SettingError, Value};

const DIRECTORY: &str = "/sys/devices/system/cpu/cpufreq";

pub(crate) fn read() -> Result<Value, SettingError> {
    read_in(Path::new(DIRECTORY))
}

pub(crate) fn write(value: &Value) -> Result<(), SettingError> {
    write_in(Path::new(DIRECTORY), value)
}

fn read_in(directory: &Path) -> Result<Value, SettingError> {
    let mut governors = BTreeMap::new();
    for policy in policies(directory)? {
        let file = directory.join(&policy).join("scaling_governor");
        let text = fs::read_to_string(&file).map_err(|source| {
            SettingError::system(format!("reading {}", file.display()), source)
        })?;
        governors.insert(policy, text.trim().to_owned());
    }
    let mut names = governors.values();
    let first = names.next().cloned();
    match first {
        Some(first) if names.all(|name| *name == first) => Ok(Value::String(first)),
        _ => Ok(serde_json::json!(governors)),
    }
}

fn write_in(directory: &Path, value: &Value) -> Result<(), SettingError> {
    let wanted = Wanted::of(value).ok_or_else(|| SettingError::BadValue {
        setting: describe(),
        value: value.to_string(),
        expected: "the name of a governor, or one for each policy",
    })?;
    for policy in policies(directory)? {
        let Some(name) = wanted.of_policy(&policy) else {
            continue;
        };
        let file = directory.join(&policy).join("scaling_governor");
        fs::write(&file, format!("{name}\n")).map_err(|source| {
            SettingError::system(format!("writing {name} to {}", file.display()), source)
        })?;
    }
    let got = read_in(directory)?;
    if got == *value {
        Ok(())
    } else {
        Err(SettingError::NotTaken {
            setting: describe(),
            wanted: value.to_string(),
            got: got.to_string(),
        })
    }
}

pub(crate) fn shell(value: &Value) -> Vec<String> {
    match Wanted::of(value) {
        Some(Wanted::Every(name)) => vec![format!(
            "echo {name} | tee {DIRECTORY}/policy*/scaling_governor"
        )],
        Some(Wanted::Each(names)) => names
            .iter()
            .map(|(policy, name)| format!("echo {name} > {DIRECTORY}/{policy}/scaling_governor"))
            .collect(),
        None => Vec::new(),
    }
}

pub(crate) fn describe() -> String {
    say!("settings-governor")
}

pub(crate) fn persistence(value: &Value) -> String {
    let name = match Wanted::of(value) {
        Some(Wanted::Every(name)) => name,
        _ => "NAME".to_owned(),
    };
    say!("settings-governor-persistence", governor = name)
}

enum Wanted {
    Every(String),
    Each(BTreeMap<String, String>),
}

impl Wanted {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) => is_name(name).then(|| Self::Every(name.clone())),
            Value::Object(names) if !names.is_empty() => names
                .iter()
                .map(|(policy, name)| {
                    let name = name.as_str().filter(|name| is_name(name))?;
                    is_policy(policy).then(|| (policy.clone(), name.to_owned()))
                })
                .collect::<Option<_>>()
                .map(Self::Each),
            _ => None,
        }
    }

    fn of_policy(&self, policy: &str) -> Option<&str> {
        match self {
            Self::Every(name) => Some(name),
            Self::Each(names) => names.get(policy).map(String::as_str),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn is_policy(name: &str) -> bool {
    name.strip_prefix("policy").is_some_and(|number| {
        (1..=5).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn policies(directory: &Path) -> Result<Vec<String>, SettingError> {
    let mut policies: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_policy(name))
        .filter(|name| {
            let file: PathBuf = directory.join(name).join("scaling_governor");
            file.exists()
        })
        .collect();
    policies.sort_unstable();
    if policies.is_empty() {
        return Err(SettingError::Refused {
            setting: describe(),
            why: "this machine lets nobody choose one (no /sys/devices/system/cpu/cpufreq/policy*): a virtual machine's \
                  frequency is its host's business"
                .to_owned(),
        });
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_policy_is_written_and_put_back() {
        let directory = std::env::temp_dir().join(format!("ws-governor-{}", std::process::id()));
        for (policy, governor) in [("policy0", "powersave"), ("policy4", "schedutil")] {
            fs::create_dir_all(directory.join(policy)).unwrap();
            fs::write(directory.join(policy).join("scaling_governor"), governor).unwrap();
        }
        let before = read_in(&directory).unwrap();
        assert_eq!(
            before,
            json!({"policy0": "powersave", "policy4": "schedutil"})
        );
        write_in(&directory, &json!("performance")).unwrap();
        assert_eq!(read_in(&directory).unwrap(), json!("performance"));
        write_in(&directory, &before).unwrap();
        let after = read_in(&directory).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(after, before);
        assert!(matches!(
            read_in(&directory),
            Err(SettingError::Refused { .. })
        ));
    }

    #[test]
    fn only_names_reach_a_shell() {
        assert_eq!(
            shell(&json!("performance")),
            [
                "echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
                    .to_owned()
            ]
        );
        for bad in [
            json!("x; reboot"),
            json!(""),
            json!({}),
            json!({"policy0/../x": "performance"}),
            json!({"policy0": "$(x)"}),
            json!(null),
        ] {
            assert!(shell(&bad).is_empty(), "{bad}");
        }
    }
}
