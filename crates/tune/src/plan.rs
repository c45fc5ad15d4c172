//! `--plan`: what a tune would try, as a shell script for each machine that a person could run by hand.

use wirespeed_doctor::{Diagnosis, Finding, Remedy};
use wirespeed_settings::Setting;
use wirespeed_words::say;

/// The script of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The machine's name.
    pub host: String,
    /// A `sh` script; every remedy with its reason, its risk and how to take it back.
    pub text: String,
}

/// What a tune would try for this diagnosis, one script per machine, worst finding first. Remedies that a person has to
/// make by hand are in it as comments. Empty when there is nothing to do.
pub fn plan(diagnosis: &Diagnosis) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    for finding in diagnosis
        .findings
        .iter()
        .filter(|finding| finding.consequence_of.is_none())
    {
        for remedy in &finding.remedies {
            let mut hosts: Vec<String> = Vec::new();
            for line in remedy
                .commands
                .iter()
                .map(String::as_str)
                .chain(remedy.undo.lines())
            {
                let host = host_of(line).unwrap_or(&finding.host).to_owned();
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            for host in hosts {
                let section = section(finding, remedy, &host);
                match scripts.iter_mut().find(|script| script.host == host) {
                    Some(script) => script.text.push_str(&section),
                    None => scripts.push(Script {
                        text: format!("{}{section}", head(&host)),
                        host,
                    }),
                }
            }
        }
    }
    scripts
}

fn head(host: &str) -> String {
    format!(
        "#!/bin/sh\n# {}\n# {}\nset -eu\n",
        say!("tune-plan-head", host = one_line(host)),
        say!("tune-plan-by-hand")
    )
}

fn section(finding: &Finding, remedy: &Remedy, host: &str) -> String {
    let mut lines = vec![
        String::new(),
        comment(&say!(
            "tune-plan-finding",
            code = &finding.code,
            host = one_line(&finding.host),
            because = one_line(&finding.because)
        )),
        format!("# {}", one_line(&remedy.title)),
    ];
    if !remedy.risk.is_empty() {
        lines.push(comment(&say!(
            "tune-plan-risk",
            risk = one_line(&remedy.risk)
        )));
    }
    let of_host = |line: &&str| host_of(line).unwrap_or(&finding.host) == host;
    for line in remedy
        .commands
        .iter()
        .flat_map(|command| command.lines())
        .filter(of_host)
    {
        // A remedy that tune itself would not try is for a person to decide on; and nothing in a plan starts a tune.
        let by_hand = remedy.changes.is_empty() || line.starts_with("wirespeed ");
        lines.push(if by_hand {
            comment(&say!("tune-plan-line-by-hand", line = line))
        } else {
            line.to_owned()
        });
    }
    lines.extend(
        remedy
            .undo
            .lines()
            .filter(of_host)
            .map(|line| comment(&say!("tune-plan-line-undo", line = line))),
    );
    lines.extend(
        persistence(remedy, &lines)
            .iter()
            .map(|text| comment(&say!("tune-plan-keep", how = one_line(text)))),
    );
    lines.push(String::new());
    lines.join("\n")
}

/// How to keep what these lines of one machine change; by interface, since its name may differ at the other end.
fn persistence(remedy: &Remedy, lines: &[String]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for change in &remedy.changes {
        let text = change.setting.persistence(&change.value);
        let concerns =
            |interface: &String| lines.iter().any(|line| line.contains(interface.as_str()));
        let here = match &change.setting {
            Setting::LinkMtu { interface }
            | Setting::SocketReceiveBuffer { interface }
            | Setting::RouteCongestion { interface }
            | Setting::EgressShaper { interface }
            | Setting::ReceiveRing { interface }
            | Setting::ThreadedNapi { interface }
            | Setting::LinkOffload { interface, .. } => concerns(interface),
            Setting::InterruptCores { interrupt } => concerns(&format!("/irq/{interrupt}/")),
            Setting::Governor => concerns(&"scaling_governor".to_owned()),
            Setting::Sysctl { name } => concerns(name),
        };
        if here && !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() && !remedy.persistence.is_empty() {
        texts.push(remedy.persistence.clone());
    }
    texts
}

/// The machine a command is for: what follows its last `# on `.
fn host_of(line: &str) -> Option<&str> {
    line.rsplit_once("# on ")
        .map(|(_, host)| host.trim())
        .filter(|host| !host.is_empty())
}

/// Text from outside must not end the comment it stands in.
fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn comment(text: &str) -> String {
    format!("# {text}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diagnosis() -> Diagnosis {
        let change = |end: &str| json!({"end": end, "setting": {"knob": "link-mtu", "interface": "wg0"}, "value": 1340});
        serde_json::from_value(json!({
            "verdict": "findings", "not_checked": [], "refused": [],
            "findings": [{
                "code": "mtu-exceeds-path", "severity": "critical", "confidence": 0.9, "host": "gw1", "direction": null,
                "evidence": [], "because": "1420 do not pass\nreally", "consequence_of": null, "refused": [],
                "remedies": [{
                    "title": "MTU 1340", "changes": [change("here"), change("far")],
                    "commands": ["ip link set dev wg0 mtu 1340  # on gw1", "ip link set dev wg0 mtu 1340  # on gw2"],
                    "goal": "goodput", "persistence": "MTU = 1340", "risk": "small packets",
                    "undo": "ip link set dev wg0 mtu 1420  # on gw1\nip link set dev wg0 mtu 1420  # on gw2"
                }, {
                    "title": "another", "changes": [], "commands": ["wirespeed tune wg0  # on gw1"], "goal": "goodput",
                    "persistence": "", "risk": "", "undo": ""
                }]
            }, {
                "code": "socket-overflow", "severity": "warning", "confidence": 0.9, "host": "gw1", "direction": null,
                "evidence": [], "because": "", "consequence_of": "mtu-exceeds-path", "refused": [], "remedies": []
            }]
        }))
        .unwrap()
    }

    #[test]
    fn each_machine_has_its_own_script() {
        let scripts = plan(&diagnosis());
        let hosts: Vec<&str> = scripts.iter().map(|script| script.host.as_str()).collect();
        assert_eq!(hosts, ["gw1", "gw2"]);
        let first = &scripts[0].text;
        assert!(
            first.contains("\nip link set dev wg0 mtu 1340  # on gw1\n"),
            "{first}"
        );
        assert!(
            first.contains("\n# undo: ip link set dev wg0 mtu 1420  # on gw1\n"),
            "{first}"
        );
        assert!(
            !first.contains("gw2\n") && first.contains("# by hand: wirespeed tune"),
            "{first}"
        );
        assert!(
            first.contains("1420 do not pass really"),
            "a line break can't leave the comment: {first}"
        );
    }

    #[test]
    fn the_script_is_shell() {
        for script in plan(&diagnosis()) {
            let checked = std::process::Command::new("sh")
                .args(["-n", "-c", &script.text])
                .status()
                .unwrap();
            assert!(checked.success(), "{}", script.text);
        }
    }

    #[test]
    fn a_healthy_tunnel_needs_none() {
        let mut healthy = diagnosis();
        healthy.findings.clear();
        assert!(plan(&healthy).is_empty());
    }
}
