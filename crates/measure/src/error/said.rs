//! Errors as a person reads them, in the language of the moment. In English they are what `Display` writes.

use wirespeed_reach::{NotStartedReason, ReachError};
use wirespeed_words::say;

use super::{LISTED, MeasureError, place_said, reasons};

impl MeasureError {
    /// The message in the language of the moment. What another machine says in it stays as that machine said it.
    pub fn said(&self) -> String {
        match self {
            Self::NoSuchInterface { .. }
            | Self::WhichInterface { .. }
            | Self::NotNeighbours { .. }
            | Self::InterfaceDown { .. }
            | Self::InterfaceGone { .. }
            | Self::PeersUnknown { .. }
            | Self::NoPeers { .. }
            | Self::WhichPeer { .. }
            | Self::NoSuchPeer { .. }
            | Self::WrongFarEnd { .. } => self.of_the_tunnel(),
            Self::NoAddress {
                what,
                machine,
                interface,
                because,
            } => say!(
                "measure-no-address",
                what = what,
                machine = name(machine),
                interface = interface,
                because = because
            ),
            Self::NothingFar => say!("measure-nothing-far"),
            Self::NoIperf3 { machine, because } => {
                say!(
                    "measure-no-iperf3",
                    machine = name(machine),
                    because = because
                )
            }
            Self::NoConnection {
                machine,
                server,
                because,
            } => say!(
                "measure-no-connection",
                machine = name(machine),
                server = server,
                because = because
            ),
            Self::ServerBusy { server, waited } => say!(
                "measure-server-busy",
                server = server,
                seconds = waited.as_secs()
            ),
            Self::LoadFailed {
                load,
                machine,
                because,
            } => say!(
                "measure-load-failed",
                load = load,
                machine = name(machine),
                because = because
            ),
            Self::ProbeFailed {
                what,
                machine,
                because,
            } => say!(
                "measure-probe-failed",
                what = what,
                machine = name(machine),
                because = because
            ),
            Self::TunnelSilent {
                machine,
                interface,
                peer,
                because,
            } => say!(
                "measure-tunnel-silent",
                machine = name(machine),
                interface = interface,
                peer = peer,
                because = because
            ),
            Self::Stopped => say!("measure-stopped"),
            Self::Reach(error) => reach_said(error),
            Self::Preparation(because) => because.clone(),
        }
    }

    /// What is wrong with the interface, its peers or the machines named.
    fn of_the_tunnel(&self) -> String {
        match self {
            Self::NoSuchInterface {
                machine,
                interface,
                known,
            } => say!(
                "measure-no-such-interface",
                machine = name(machine),
                interface = interface,
                known = listed(known)
            ),
            Self::WhichInterface { machine, known } => say!(
                "measure-which-interface",
                count = known.len(),
                machine = name(machine),
                known = listed(known)
            ),
            Self::NotNeighbours { here, far } => {
                say!("measure-not-neighbours", here = name(here), far = name(far))
            }
            Self::InterfaceDown { machine, interface } => say!(
                "measure-interface-down",
                machine = name(machine),
                interface = interface
            ),
            Self::InterfaceGone { machine, interface } => say!(
                "measure-interface-gone",
                machine = name(machine),
                interface = interface
            ),
            Self::PeersUnknown {
                machine,
                interface,
                because,
            } => say!(
                "measure-peers-unknown",
                machine = name(machine),
                interface = interface,
                because = reasons::told(because)
            ),
            Self::NoPeers { machine, interface } => {
                say!(
                    "measure-no-peers",
                    machine = name(machine),
                    interface = interface
                )
            }
            Self::WhichPeer {
                machine,
                interface,
                peers,
            } => say!(
                "measure-which-peer",
                machine = name(machine),
                interface = interface,
                count = peers.len(),
                peers = listed(peers)
            ),
            Self::NoSuchPeer {
                machine,
                interface,
                peer,
                peers,
            } => say!(
                "measure-no-such-peer",
                machine = name(machine),
                interface = interface,
                peer = peer,
                peers = listed(peers)
            ),
            Self::WrongFarEnd {
                here,
                interface,
                far,
            } => say!(
                "measure-wrong-far-end",
                here = name(here),
                interface = interface,
                far = name(far)
            ),
            other => other.to_string(),
        }
    }
}

/// Why a machine could not be reached, in the language of the moment.
pub fn reach_said(error: &ReachError) -> String {
    match error {
        ReachError::ProgramMissing {
            machine,
            program,
            detail,
            ..
        } => say!(
            "reach-program-missing",
            machine = name(machine),
            program = program,
            detail = detail,
            advice = if machine.starts_with("ssh://") {
                say!("reach-install-there")
            } else {
                say!("reach-install-again")
            }
        ),
        ReachError::HostKey { machine, detail } => {
            say!("reach-host-key", machine = name(machine), detail = detail)
        }
        ReachError::Login { machine, detail } => {
            say!("reach-login", machine = name(machine), detail = detail)
        }
        ReachError::Unreachable { machine, detail } => {
            say!(
                "reach-unreachable",
                machine = name(machine),
                detail = detail
            )
        }
        ReachError::Version {
            machine,
            theirs,
            their_protocol,
            ours,
            our_protocol,
        } => say!(
            "reach-version",
            machine = name(machine),
            theirs = theirs,
            their_protocol = *their_protocol,
            ours = ours,
            our_protocol = *our_protocol
        ),
        ReachError::TimedOut {
            machine,
            operation,
            after,
            detail,
        } => say!(
            "reach-timed-out",
            machine = name(machine),
            operation = operation,
            seconds = (after.as_secs_f64() * 10.0).round() / 10.0,
            detail = detail
        ),
        ReachError::NotCalled {
            machine,
            operation,
            detail,
        } => say!(
            "reach-not-called",
            machine = name(machine),
            operation = operation,
            detail = detail
        ),
        ReachError::Answer {
            machine,
            operation,
            detail,
        } => say!(
            "reach-answer",
            machine = name(machine),
            operation = operation,
            detail = detail
        ),
        ReachError::NotStarted { machine, reason } => say!(
            "reach-not-started",
            machine = name(machine),
            reason = not_started_said(reason)
        ),
        ReachError::Place(error) => place_said(error),
        // The words of a system, of ssh or of the far machine, as they were said.
        other => other.to_string(),
    }
}

fn not_started_said(reason: &NotStartedReason) -> String {
    match reason {
        NotStartedReason::NoNamespace { name, detail } => {
            say!("reach-no-namespace", name = name, detail = detail)
        }
        NotStartedReason::NeedsRoot { name, detail } => {
            say!("reach-needs-root", name = name, detail = detail)
        }
        NotStartedReason::NoProgram { program, package } => {
            say!("reach-no-program", program = program, package = *package)
        }
        NotStartedReason::ProgramNotRun { program, detail } => {
            say!("reach-program-not-run", program = program, detail = detail)
        }
        NotStartedReason::NoThread { detail } => say!("reach-no-thread", detail = detail),
        NotStartedReason::NoSshCommand => say!("reach-no-ssh-command"),
        NotStartedReason::Iperf3 => say!("reach-iperf3-answers-nothing"),
    }
}

/// A machine as a sentence names it.
fn name(machine: &str) -> String {
    if machine == "here" {
        say!("measure-here")
    } else {
        machine.to_owned()
    }
}

fn listed(names: &[String]) -> String {
    let (told, more) = names.split_at(names.len().min(LISTED));
    match (told, more.len()) {
        ([], _) => say!("measure-listed-none"),
        (_, 0) => told.join(", "),
        (_, more) => say!("measure-listed-more", told = told.join(", "), more = more),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wirespeed_reach::Place;
    use wirespeed_words::{Language, within};

    use super::*;

    fn some() -> Vec<MeasureError> {
        let text = |text: &str| text.to_owned();
        let (machine, interface) = (text("gw1"), text("wg0"));
        let many: Vec<String> = (0..12).map(|number| format!("key{number}")).collect();
        vec![
            MeasureError::NoSuchInterface {
                machine: machine.clone(),
                interface: interface.clone(),
                known: Vec::new(),
            },
            MeasureError::WhichInterface {
                machine: machine.clone(),
                known: many.clone(),
            },
            MeasureError::NotNeighbours {
                here: machine.clone(),
                far: text("gw2"),
            },
            MeasureError::InterfaceDown {
                machine: machine.clone(),
                interface: interface.clone(),
            },
            MeasureError::InterfaceGone {
                machine: machine.clone(),
                interface: interface.clone(),
            },
            MeasureError::PeersUnknown {
                machine: machine.clone(),
                interface: interface.clone(),
                because: text("why"),
            },
            MeasureError::NoPeers {
                machine: machine.clone(),
                interface: interface.clone(),
            },
            MeasureError::WhichPeer {
                machine: machine.clone(),
                interface: interface.clone(),
                peers: many.clone(),
            },
            MeasureError::NoSuchPeer {
                machine: machine.clone(),
                interface: interface.clone(),
                peer: text("key"),
                peers: many,
            },
            MeasureError::WrongFarEnd {
                here: machine.clone(),
                interface: interface.clone(),
                far: text("gw2"),
            },
            MeasureError::NoAddress {
                what: text("what"),
                machine: machine.clone(),
                interface: interface.clone(),
                because: text("why"),
            },
            MeasureError::NothingFar,
            MeasureError::NoIperf3 {
                machine: machine.clone(),
                because: text("why"),
            },
            MeasureError::NoConnection {
                machine: machine.clone(),
                server: text("192.0.2.1 port 5201"),
                because: text("why"),
            },
            MeasureError::ServerBusy {
                server: text("192.0.2.1 port 5201"),
                waited: Duration::from_secs(7),
            },
            MeasureError::LoadFailed {
                load: text("load"),
                machine: machine.clone(),
                because: text("why"),
            },
            MeasureError::ProbeFailed {
                what: text("what"),
                machine: machine.clone(),
                because: text("why"),
            },
            MeasureError::TunnelSilent {
                machine,
                interface,
                peer: text("key"),
                because: text("why"),
            },
            MeasureError::Stopped,
        ]
    }

    fn of_reach() -> Vec<MeasureError> {
        let text = |text: &str| text.to_owned();
        let (machine, detail) = (text("gw1"), text("why"));
        let all = [
            ReachError::ProgramMissing {
                machine: machine.clone(),
                program: text("wirespeed"),
                detail: detail.clone(),
                advice: text("install it again, or say where it is"),
            },
            ReachError::HostKey {
                machine: machine.clone(),
                detail: detail.clone(),
            },
            ReachError::Login {
                machine: machine.clone(),
                detail: detail.clone(),
            },
            ReachError::Unreachable {
                machine: machine.clone(),
                detail: detail.clone(),
            },
            ReachError::Version {
                machine: machine.clone(),
                theirs: text("0.0.9"),
                their_protocol: 1,
                ours: text("0.1.0"),
                our_protocol: 2,
            },
            ReachError::TimedOut {
                machine: machine.clone(),
                operation: text("tune.begin"),
                after: Duration::from_secs(20),
                detail: String::new(),
            },
            ReachError::NotCalled {
                machine: machine.clone(),
                operation: text("tune.begin"),
                detail: detail.clone(),
            },
            ReachError::Answer {
                machine: machine.clone(),
                operation: text("tune.begin"),
                detail: detail.clone(),
            },
            ReachError::Place("ssh://".parse::<Place>().unwrap_err()),
        ];
        let (name, program) = (text("home"), text("ssh"));
        let reasons = [
            NotStartedReason::NoNamespace {
                name: name.clone(),
                detail: detail.clone(),
            },
            NotStartedReason::NeedsRoot {
                name,
                detail: detail.clone(),
            },
            NotStartedReason::NoProgram {
                program: program.clone(),
                package: "openssh-client",
            },
            NotStartedReason::ProgramNotRun {
                program,
                detail: detail.clone(),
            },
            NotStartedReason::NoThread { detail },
            NotStartedReason::NoSshCommand,
            NotStartedReason::Iperf3,
        ];
        let not_started = reasons.map(|reason| ReachError::NotStarted {
            machine: machine.clone(),
            reason,
        });
        let all = all.into_iter().chain(not_started);
        all.map(MeasureError::Reach).collect()
    }

    #[test]
    fn in_english_it_is_what_the_error_writes() {
        for error in some().into_iter().chain(of_reach()) {
            assert_eq!(error.said(), error.to_string());
            let french = within(Language::French, || error.said());
            assert_ne!(french, error.to_string());
        }
    }
}
