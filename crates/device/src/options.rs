//! The command line of `wirespeed-device`.

use std::num::NonZeroU16;

use clap::builder::FalseyValueParser;
use clap::{Parser, ValueEnum};
use wirespeed_help::reason;
use wirespeed_language::quoted;

use crate::offloads::Offload;
use crate::tell;

/// Bytes in the name of a network interface, at most.
const NAME_BYTES: usize = 15;

/// What a device is started with.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "wirespeed-device",
    version,
    about = "A WireGuard interface in userspace",
    long_about = "Makes a WireGuard interface and carries its traffic in userspace. Configure it with wg, or start it \
                  through wg-quick with WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device. Returns once the interface is \
                  there and goes on in the background; delete the interface to stop it. As wg-quick gives no options, each \
                  has an environment variable.",
    after_help = "\
Examples:
  WG_QUICK_USERSPACE_IMPLEMENTATION=wirespeed-device wg-quick up wg0
  wirespeed-device wg0
  wirespeed-device --statistics wg0
  systemctl enable --now wirespeed-device@wg0"
)]
pub struct Options {
    /// Name of the interface to make
    #[arg(value_name = "INTERFACE", value_parser = interface_name)]
    pub interface: String,

    /// Stay in the foreground (also: `WG_PROCESS_FOREGROUND=1`)
    #[arg(short, long)]
    pub foreground: bool,

    /// Who does which step on which core
    #[arg(long, value_enum, default_value_t = EngineKind::Inline, value_name = "NAME", env = "WIRESPEED_ENGINE")]
    pub engine: EngineKind,

    /// How many workers share the traffic [default: the engine's choice]
    #[arg(long, value_name = "N", value_parser = workers, env = "WIRESPEED_WORKERS")]
    pub workers: Option<NonZeroU16>,

    /// Bind each worker to a core of its own
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WIRESPEED_PIN")]
    pub pin: bool,

    /// Let every worker send to a peer from its own source port; the peer sees it roam between them
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WIRESPEED_SPREAD")]
    pub spread: bool,

    /// Do without these offloads, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = offload, env = "WIRESPEED_NO_OFFLOAD")]
    pub no_offload: Vec<Offload>,

    /// Use these (udp-gso, udp-gro) although the kernel's version is known for breaking them
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = judged_by_version, env = "WIRESPEED_FORCE_OFFLOAD")]
    pub force_offload: Vec<Offload>,

    /// How much to log [also: `LOG_LEVEL`; default: info]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,

    /// Keep all privileges after the start (for finding faults)
    #[arg(long, value_parser = FalseyValueParser::new(), env = "WIRESPEED_NO_SANDBOX")]
    pub no_sandbox: bool,

    /// Print what the running device of this name counts, as JSON, and end
    #[arg(long, conflicts_with_all = ["foreground", "detached"])]
    pub statistics: bool,

    /// Started by the command a person gave: say on standard output when all is ready
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// An arrangement of the steps over the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// Each worker carries a packet all the way
    #[default]
    Inline,
    /// Readers, sealers and writers hand packets on
    Pipeline,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Silent,
    /// What went wrong
    Error,
    /// And what may go wrong
    Warn,
    /// And what changed
    Info,
    /// And what is done
    #[value(alias = "verbose")]
    Debug,
    /// And each step of it
    Trace,
}

impl From<LogLevel> for log::LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Silent => Self::Off,
            LogLevel::Error => Self::Error,
            LogLevel::Warn => Self::Warn,
            LogLevel::Info => Self::Info,
            LogLevel::Debug => Self::Debug,
            LogLevel::Trace => Self::Trace,
        }
    }
}

/// The keys of what values are refused for, and of why a device tells nothing of itself, in other languages than English.
pub const REASONS: [&str; 10] = [
    "help-wirespeed-device-name-length",
    "help-wirespeed-device-name-folder",
    "help-wirespeed-device-name-letter",
    "help-wirespeed-device-not-workers",
    "help-wirespeed-device-not-by-version",
    "help-wirespeed-device-not-offload",
    tell::NONE_THERE,
    tell::ONE_LEFT_BEHIND,
    tell::NO_ANSWER,
    tell::NOT_ASKED,
];

/// A name the kernel takes for an interface and that is safe in a path.
fn interface_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES {
        let most = NAME_BYTES.to_string();
        return Err(reason(REASONS[0], &[("most", &most)], || {
            format!("a name has 1 to {NAME_BYTES} bytes")
        }));
    }
    if text == "." || text == ".." {
        return Err(reason(REASONS[1], &[], || {
            "this name is a folder's".to_owned()
        }));
    }
    let refused = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
    match text.chars().find(|c| refused(*c)) {
        Some(c) => {
            let letter = quoted(&c.to_string());
            Err(reason(REASONS[2], &[("letter", &letter)], || {
                format!("a name has no {letter}")
            }))
        }
        None => Ok(text.to_owned()),
    }
}

fn workers(text: &str) -> Result<NonZeroU16, String> {
    text.parse()
        .ok()
        .filter(|workers: &NonZeroU16| workers.get() <= 256)
        .ok_or_else(|| reason(REASONS[3], &[], || "a number from 1 to 256".to_owned()))
}

/// One that some versions of the kernel are known to break.
fn judged_by_version(text: &str) -> Result<Offload, String> {
    [Offload::UdpGso, Offload::UdpGro]
        .into_iter()
        .find(|offload| offload.name() == text)
        .ok_or_else(|| {
            reason(REASONS[4], &[], || {
                "udp-gso or udp-gro: no version of the kernel speaks against others".to_owned()
            })
        })
}

fn offload(text: &str) -> Result<Offload, String> {
    Offload::ALL
        .into_iter()
        .find(|offload| offload.name() == text)
        .ok_or_else(|| {
            let all = Offload::ALL.map(Offload::name).join(", ");
            reason(REASONS[5], &[("offloads", &all)], || {
                format!("one of {all}")
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn a_name_is_all_it_takes() {
        let options = parse("wirespeed-device wg0").unwrap();
        assert_eq!(options.interface, "wg0");
        assert!(!options.foreground && !options.pin && !options.spread && !options.no_sandbox);
        assert_eq!(
            (options.engine, options.workers),
            (EngineKind::Inline, None)
        );
    }

    #[test]
    fn everything_can_be_said() {
        let options = parse(
            "wirespeed-device --engine pipeline --workers 4 --pin --spread --no-offload udp-gso,tun-uso --force-offload udp-gro --log-level verbose -f wg0",
        )
        .unwrap();
        assert!(options.foreground && options.pin && options.spread);
        assert_eq!(options.engine, EngineKind::Pipeline);
        assert_eq!(options.workers, NonZeroU16::new(4));
        assert_eq!(options.no_offload, [Offload::UdpGso, Offload::TunUso]);
        assert_eq!(options.force_offload, [Offload::UdpGro]);
        assert_eq!(options.log_level, Some(LogLevel::Debug));
    }

    #[test]
    fn names_no_interface_can_have_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a:b",
            "a\tb",
            "a\nb",
            "wg%d",
            "sixteen-letters-",
        ] {
            assert!(interface_name(name).is_err(), "{name:?}");
        }
        for name in ["wg0", "fifteen-letters", "a=b+c.d_e-f", "é"] {
            assert_eq!(interface_name(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn numbers_and_names_out_of_range_are_refused() {
        for line in [
            "wirespeed-device",
            "wirespeed-device wg0 wg1",
            "wirespeed-device wg0 --workers 0",
            "wirespeed-device wg0 --workers 257",
            "wirespeed-device wg0 --engine fast",
            "wirespeed-device wg0 --no-offload everything",
            "wirespeed-device wg0 --force-offload tun-tso4",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
