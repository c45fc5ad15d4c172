//! Ways in for the fuzz targets, and the replay of their corpus.
//!
//! Each takes any bytes, gives them to a parser as the crate itself would, and panics when what comes out breaks a
//! promise. Only in builds with the feature `fuzzing`, and in tests.
#![allow(
    clippy::missing_panics_doc,
    reason = "a panic is what the caller looks for"
)]

use std::hint::black_box;

use crate::shell_word::shell_word;
use crate::{Setting, Value, egress_shaper, link, link_offload, netlink, route_congestion};

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

/// A datagram of the kernel.
pub fn kernel(datagram: &[u8]) {
    for (kind, _, body) in netlink::Messages(datagram) {
        // The end of an answer is understood or not, and never a panic.
        let _end = black_box(netlink::end_of_answer(kind, body));
        black_box(link::parse(body));
        black_box(egress_shaper::parse_root(body));
        black_box(link_offload::state(body, "rx-gro"));
        route_congestion::exercise(body);
    }
}

/// A knob and a value for it, as a journal or another machine may name them: `[setting, value]` in JSON.
pub fn shell(json: &[u8]) {
    let Ok((setting, value)) = serde_json::from_slice::<(Setting, Value)>(json) else {
        return;
    };
    let again: Setting =
        serde_json::from_value(serde_json::json!(setting)).expect("a setting can be stored");
    assert_eq!(setting, again);
    let normal = setting.normal(&value);
    assert_eq!(
        setting.normal(&normal),
        normal,
        "normal once, normal always"
    );
    setting.describe();
    setting.persistence(&value);
    let commands = setting.shell(&value);
    for command in &commands {
        assert!(!command.chars().any(char::is_control), "{command:?}");
    }
    // Whatever the interface is called, it is one word of the same commands.
    if let Some((name, plain)) = with_plain_name(&setting)
        && !commands.is_empty()
    {
        let expected: Vec<String> = plain
            .shell(&value)
            .into_iter()
            .map(|command| command.replace(PLAIN_NAME, &shell_word(name)))
            .collect();
        assert_eq!(commands, expected);
    }
}

const PLAIN_NAME: &str = "Plain0Name";

fn with_plain_name(setting: &Setting) -> Option<(&str, Setting)> {
    let interface = PLAIN_NAME.to_owned();
    Some(match setting {
        Setting::LinkMtu { interface: name } => (name, Setting::LinkMtu { interface }),
        Setting::SocketReceiveBuffer { interface: name } => {
            (name, Setting::SocketReceiveBuffer { interface })
        }
        Setting::RouteCongestion { interface: name } => {
            (name, Setting::RouteCongestion { interface })
        }
        Setting::EgressShaper { interface: name } => (name, Setting::EgressShaper { interface }),
        Setting::ReceiveRing { interface: name } => (name, Setting::ReceiveRing { interface }),
        Setting::ThreadedNapi { interface: name } => (name, Setting::ThreadedNapi { interface }),
        Setting::LinkOffload {
            interface: name,
            feature,
        } => (
            name,
            Setting::LinkOffload {
                interface,
                feature: feature.clone(),
            },
        ),
        Setting::InterruptCores { .. } | Setting::Governor | Setting::Sysctl { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::replay::corpus;

    #[test]
    fn the_corpus_is_read() {
        corpus("settings_kernel", super::kernel);
        corpus("settings_shell", super::shell);
    }
}
