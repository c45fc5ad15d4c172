//! What went wrong in a lab as a person reads it. In English it is what `Display` writes.

use wirespeed_words::say;

use super::LabError;

impl LabError {
    /// The message in the language of the moment. What a program or the system said in it stays as it was said.
    pub fn said(&self) -> String {
        match self {
            Self::Scenario { origin, why } => {
                say!("lab-error-scenario", origin = origin, why = why)
            }
            Self::UnknownScenario { name, known } => {
                say!("lab-error-unknown-scenario", name = name, known = known)
            }
            Self::NotRoot => say!("lab-error-not-root"),
            Self::ProgramMissing { program, package } => say!(
                "lab-error-program-missing",
                program = *program,
                package = *package
            ),
            Self::NoTun => say!("lab-error-no-tun"),
            Self::NoImplementation { name, why } => {
                say!("lab-error-no-implementation", name = name, why = why)
            }
            Self::UnknownImplementation(name) => {
                say!("lab-error-unknown-implementation", name = name)
            }
            Self::BadId(id) => say!("lab-error-bad-id", id = id),
            Self::Taken(id) => say!("lab-error-taken", id = id),
            Self::NoSuchLab { id, running } => {
                say!("lab-error-no-such-lab", id = id, running = running)
            }
            Self::Busy { id, pid } => say!("lab-error-busy", id = id, pid = pid.to_string()),
            Self::NoSuchHost { id, host, known } => {
                say!(
                    "lab-error-no-such-host",
                    id = id,
                    host = host,
                    known = known
                )
            }
            Self::NoTraffic {
                id,
                what,
                seconds,
                detail,
            } => say!(
                "lab-error-no-traffic",
                id = id,
                what = what,
                seconds = *seconds,
                detail = detail
            ),
            Self::LeftOver { id, left } => say!("lab-error-left-over", id = id, left = left),
            Self::Cancelled => say!("lab-error-cancelled"),
            Self::Machine {
                sysctl,
                now,
                by,
                wanted,
            } => say!(
                "lab-error-machine",
                sysctl = sysctl,
                now = now,
                by = by,
                wanted = wanted
            ),
            // The words of a file, of the system or of a program.
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn in_english_it_is_what_the_error_writes() {
        let text = |text: &str| text.to_owned();
        for error in [
            LabError::Scenario {
                origin: text("a.toml"),
                why: text("why"),
            },
            LabError::UnknownImplementation(text("a")),
            LabError::UnknownScenario {
                name: text("a"),
                known: text("b, c"),
            },
            LabError::NotRoot,
            LabError::ProgramMissing {
                program: "tc",
                package: "iproute2",
            },
            LabError::NoTun,
            LabError::NoImplementation {
                name: text("a"),
                why: text("why"),
            },
            LabError::BadId(text("A")),
            LabError::Taken(text("a")),
            LabError::NoSuchLab {
                id: text("a"),
                running: text("b"),
            },
            LabError::Busy {
                id: text("a"),
                pid: 123_456,
            },
            LabError::NoSuchHost {
                id: text("a"),
                host: text("b"),
                known: text("c"),
            },
            LabError::NoTraffic {
                id: text("a"),
                what: text("b"),
                seconds: 10,
                detail: text("c"),
            },
            LabError::LeftOver {
                id: text("a"),
                left: text("b"),
            },
            LabError::Cancelled,
            LabError::Machine {
                sysctl: text("a"),
                now: text("1"),
                by: text("b"),
                wanted: text("2"),
            },
        ] {
            let english = error.to_string();
            assert_eq!(error.said(), english);
            assert_ne!(within(Language::French, || error.said()), english);
        }
    }
}
