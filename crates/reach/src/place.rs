//! Where a machine is: the text a user types after `--far`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const IPERF3_PORT: u16 = 5201;

/// Longest name of a part, in bytes: the most a file's name has, and longer than any name of a host.
pub const LONGEST_PLACE_PART: usize = 255;

/// Where a machine is. As text (also in serde): `here`, `netns:NAME`, `ssh://[user@]host[:port]`,
/// `iperf3://host[:port]`; an IPv6 address stands in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Place {
    /// This machine, in the network namespace this program runs in.
    Here,
    /// A named network namespace of this machine (`ip netns`).
    Netns(String),
    /// Another machine, over the system's OpenSSH.
    Ssh(SshTarget),
    /// An iperf3 server that nothing else can be asked of. Not a machine that [`crate::Machine::open`] can open.
    Iperf3 {
        /// Name or address (IPv6 without brackets).
        host: String,
        /// TCP port.
        port: u16,
    },
}

/// Whom to ssh to. Host aliases of `~/.ssh/config` work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshTarget {
    /// Login name; `None` = what ssh's configuration says.
    pub user: Option<String>,
    /// Name, alias or address (IPv6 without brackets).
    pub host: String,
    /// TCP port; `None` = what ssh's configuration says.
    pub port: Option<u16>,
}

/// Why a text is not a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place:?} is not a place wirespeed can go to: {reason}; write here, netns:NAME, ssh://[user@]host[:port] or iperf3://host[:port]"
)]
pub struct PlaceError {
    /// What was given.
    pub place: String,
    /// What is wrong with it.
    pub reason: PlaceReason,
}

/// What is wrong with a text that is to be a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceReason {
    /// Neither `here` nor one of the schemes.
    #[error("it begins with none of the known ways")]
    UnknownWay,
    /// `[fd00::1`.
    #[error("the bracket before the address is not closed")]
    OpenBracket,
    /// `[fd00::1]22`.
    #[error("only a port may follow the bracket")]
    BehindBracket,
    /// `fd00::1`.
    #[error("an IPv6 address stands in brackets, such as [fd00::1]")]
    NoBrackets,
    /// No number from 0 to 65535.
    #[error("{0:?} is not a port")]
    NoPort(String),
    /// No connection can be made to it.
    #[error("there is no port 0")]
    PortZero,
    /// `../../etc`.
    #[error("a namespace is a name, not a path")]
    NamespacePath,
    /// Nothing stands where a part should.
    #[error("the {} is missing", .0.word())]
    Missing(PlacePart),
    /// A name that begins with a hyphen.
    #[error("a {} that begins with - would be taken for an option", .0.word())]
    LikeAnOption(PlacePart),
    /// More than [`LONGEST_PLACE_PART`] bytes.
    #[error("the {} is longer than {LONGEST_PLACE_PART} bytes", .0.word())]
    TooLong(PlacePart),
    /// A character that no such part has.
    #[error("{:?} can't be part of a {}", .1.to_string(), .0.word())]
    Character(PlacePart, char),
}

/// A part of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacePart {
    /// A network namespace.
    Namespace,
    /// Who logs in.
    User,
    /// Name or address.
    Host,
}

impl PlacePart {
    /// In one English word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::User => "user",
            Self::Host => "host",
        }
    }
}

impl Place {
    /// Names that other programs would take for an option or a path are refused, however the value was made.
    pub(crate) fn check(&self) -> Result<(), PlaceError> {
        let checked = match self {
            Self::Here => Ok(()),
            Self::Netns(name) => check_netns(name),
            Self::Ssh(SshTarget { user, host, port }) => user
                .as_deref()
                .map_or(Ok(()), check_user)
                .and_then(|()| check_host(host))
                .and_then(|()| port.map_or(Ok(()), check_port)),
            Self::Iperf3 { host, port } => check_host(host).and_then(|()| check_port(*port)),
        };
        checked.map_err(|reason| PlaceError {
            place: self.to_string(),
            reason,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("here"),
            Self::Netns(name) => write!(f, "netns:{name}"),
            Self::Ssh(target) => write!(f, "ssh://{target}"),
            Self::Iperf3 { host, port } => write!(f, "iperf3://{}:{port}", Bracketed(host)),
        }
    }
}

impl fmt::Display for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}", Bracketed(&self.host))?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') {
            write!(f, "[{}]", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl TryFrom<String> for Place {
    type Error = PlaceError;

    fn try_from(text: String) -> Result<Self, PlaceError> {
        text.parse()
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let place = parse(text).map_err(|reason| PlaceError {
            place: text.to_owned(),
            reason,
        })?;
        place.check().map_err(|error| PlaceError {
            place: text.to_owned(),
            ..error
        })?;
        Ok(place)
    }
}

fn parse(text: &str) -> Result<Place, PlaceReason> {
    if text == "here" {
        Ok(Place::Here)
    } else if let Some(name) = text.strip_prefix("netns:") {
        Ok(Place::Netns(name.to_owned()))
    } else if let Some(rest) = text.strip_prefix("ssh://") {
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(user.to_owned()), address),
            None => (None, rest),
        };
        let (host, port) = host_and_port(address)?;
        Ok(Place::Ssh(SshTarget { user, host, port }))
    } else if let Some(rest) = text.strip_prefix("iperf3://") {
        let (host, port) = host_and_port(rest.strip_suffix('/').unwrap_or(rest))?;
        Ok(Place::Iperf3 {
            host,
            port: port.unwrap_or(IPERF3_PORT),
        })
    } else {
        Err(PlaceReason::UnknownWay)
    }
}

fn host_and_port(address: &str) -> Result<(String, Option<u16>), PlaceReason> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or(PlaceReason::OpenBracket)?;
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return Err(PlaceReason::BehindBracket),
        }
    } else {
        match address.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(PlaceReason::NoBrackets),
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    let port = match port {
        // `u16::from_str` would accept "+22".
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(
            digits
                .parse()
                .map_err(|_| PlaceReason::NoPort(digits.to_owned()))?,
        ),
        Some(other) => return Err(PlaceReason::NoPort(other.to_owned())),
        None => None,
    };
    Ok((host.to_owned(), port))
}

fn check_netns(name: &str) -> Result<(), PlaceReason> {
    if name == "." || name == ".." || name.contains('/') {
        return Err(PlaceReason::NamespacePath);
    }
    check_part(PlacePart::Namespace, name, |c| {
        !c.is_control() && !c.is_whitespace()
    })
}

fn check_user(user: &str) -> Result<(), PlaceReason> {
    // Some directory services have users like DOMAIN\user or user@domain.
    check_part(PlacePart::User, user, |c| {
        c.is_alphanumeric() || "._-+$@\\".contains(c)
    })
}

fn check_host(host: &str) -> Result<(), PlaceReason> {
    check_part(PlacePart::Host, host, |c| {
        c.is_alphanumeric() || "._-:%".contains(c)
    })
}

fn check_part(
    part: PlacePart,
    word: &str,
    allowed: impl Fn(char) -> bool,
) -> Result<(), PlaceReason> {
    if word.is_empty() {
        Err(PlaceReason::Missing(part))
    } else if word.starts_with('-') {
        Err(PlaceReason::LikeAnOption(part))
    } else if word.len() > LONGEST_PLACE_PART {
        Err(PlaceReason::TooLong(part))
    } else if let Some(character) = word.chars().find(|c| !allowed(*c)) {
        Err(PlaceReason::Character(part, character))
    } else {
        Ok(())
    }
}

fn check_port(port: u16) -> Result<(), PlaceReason> {
    if port == 0 {
        Err(PlaceReason::PortZero)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ssh(user: Option<&str>, host: &str, port: Option<u16>) -> Place {
        Place::Ssh(SshTarget {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        })
    }

    #[test]
    fn every_form_is_read() {
        let cases = [
            ("here", Place::Here),
            (
                "netns:ws-a1-client",
                Place::Netns("ws-a1-client".to_owned()),
            ),
            ("ssh://nas", ssh(None, "nas", None)),
            ("ssh://nas/", ssh(None, "nas", None)),
            ("ssh://root@nas:2222", ssh(Some("root"), "nas", Some(2222))),
            ("ssh://me@corp@nas", ssh(Some("me@corp"), "nas", None)),
            ("ssh://[fd00::1]:22", ssh(None, "fd00::1", Some(22))),
            (
                "ssh://root@[fe80::1%eth0]",
                ssh(Some("root"), "fe80::1%eth0", None),
            ),
            (
                "iperf3://10.0.0.1",
                Place::Iperf3 {
                    host: "10.0.0.1".to_owned(),
                    port: 5201,
                },
            ),
            (
                "iperf3://[::1]:99",
                Place::Iperf3 {
                    host: "::1".to_owned(),
                    port: 99,
                },
            ),
        ];
        for (text, place) in cases {
            assert_eq!(text.parse(), Ok(place), "{text}");
        }
    }

    #[test]
    fn what_ssh_would_take_for_an_option_is_refused() {
        for text in [
            "ssh://-oProxyCommand=reboot",
            "ssh://-l@host",
            "netns:-all",
            "iperf3://-v",
            "ssh://a;reboot",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
        assert!(ssh(Some("-x"), "host", None).check().is_err());
        assert!(Place::Netns("../../etc".to_owned()).check().is_err());
    }

    #[test]
    fn the_reason_is_told() {
        use PlacePart::{Host, Namespace, User};
        use PlaceReason::{
            BehindBracket, Character, LikeAnOption, Missing, NamespacePath, NoBrackets, NoPort,
            OpenBracket, PortZero, TooLong, UnknownWay,
        };
        let port = |text: &str| NoPort(text.to_owned());
        let long = format!("ssh://{}", "a".repeat(LONGEST_PLACE_PART + 1));
        for (text, reason) in [
            ("ssh://fd00::1", NoBrackets),
            ("ssh://[::1", OpenBracket),
            ("ssh://[::1]22", BehindBracket),
            ("ssh://nas:65536", port("65536")),
            ("ssh://nas:+22", port("+22")),
            ("ssh://nas:", port("")),
            ("ssh://nas:0", PortZero),
            ("ssh://@nas", Missing(User)),
            ("ssh://", Missing(Host)),
            ("ssh://-x", LikeAnOption(Host)),
            ("ssh://a;reboot", Character(Host, ';')),
            (&long, TooLong(Host)),
            ("netns:", Missing(Namespace)),
            ("netns:-a", LikeAnOption(Namespace)),
            ("netns:a b", Character(Namespace, ' ')),
            ("netns:a/b", NamespacePath),
            ("telnet://nas", UnknownWay),
        ] {
            assert_eq!(text.parse::<Place>().unwrap_err().reason, reason, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_what_is_read_is_written_alike(text in "(here|netns:|ssh://|iperf3://)?\\PC{0,20}") {
            if let Ok(place) = text.parse::<Place>() {
                prop_assert_eq!(place.to_string().parse::<Place>(), Ok(place));
            }
        }
    }
}
