//! Why a knob could not be read or turned.

use std::io;

/// Why a knob could not be read or turned. Messages say what was tried and what to do next; the
/// machine's name is added by whoever asked.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The value has the wrong shape or is out of range.
    #[error("{setting}: {value} is not a value for it; expected {expected}")]
    BadValue {
        /// The knob in words.
        setting: String,
        /// What was given, as JSON.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// The thing the knob belongs to does not exist here.
    #[error("{what} not found; {hint}")]
    NotFound {
        /// What was looked for.
        what: String,
        /// What to do.
        hint: String,
    },
    /// It could be tried, but would do nothing or harm.
    #[error("{setting}: not touched: {why}")]
    Refused {
        /// The knob in words.
        setting: String,
        /// Why.
        why: String,
    },
    /// The kernel said no.
    #[error("{tried}: {source}; {hint}")]
    System {
        /// What was tried.
        tried: String,
        /// What to do.
        hint: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The kernel took the value but reads back another one.
    #[error("{setting}: wrote {wanted}, but it reads {got}")]
    NotTaken {
        /// The knob in words.
        setting: String,
        /// What was written.
        wanted: String,
        /// What it reads.
        got: String,
    },
}

/// Hint for calls that fail without privileges or for a missing kernel feature.
pub(crate) const HINT_ROOT: &str = "run as root on this machine (CAP_NET_ADMIN is needed)";

impl SettingError {
    pub(crate) fn system(tried: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => HINT_ROOT,
            io::ErrorKind::InvalidInput => "the kernel does not take this value here",
            io::ErrorKind::NotFound => {
                "it does not exist in this network namespace, or this kernel was built without it"
            }
            _ => "check that the interface still exists in this network namespace",
        };
        Self::System {
            tried: tried.into(),
            hint,
            source,
        }
    }
}
