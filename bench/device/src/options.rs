//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// What to compare, and how long.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "wirespeed-bench-device",
    version,
    about = "Compares wirespeed-device with other WireGuard implementations in one interleaved run"
)]
pub(crate) struct Options {
    /// How often everything is measured
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,

    /// Length of one load, warm-up included
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) seconds: u32,

    /// How much of it is thrown away at the start
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    pub(crate) warm_up: f64,

    /// Two rounds of one-second loads: does everything run?
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these implementations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Only these rows
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,

    /// Name the rows and the implementations, say which of them are here, and end
    #[arg(long)]
    pub(crate) list: bool,

    /// The program to compare
    #[arg(
        long,
        default_value = "target/release/wirespeed-device",
        value_name = "FILE"
    )]
    pub(crate) device: PathBuf,

    /// Where the other implementations are, as `scripts/peers` builds them
    #[arg(long, default_value = "target/peers/bin", value_name = "FOLDER")]
    pub(crate) peers: PathBuf,

    /// Where the results go
    #[arg(long, default_value = "bench/out/device", value_name = "FOLDER")]
    pub(crate) out: PathBuf,

    /// Congestion control of the TCP loads
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    pub(crate) congestion_control: String,

    /// Fixes the order of the implementations and the bootstrap [default: random, and in the results]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}

impl Options {
    /// With what `--quick` stands for filled in, and a warm-up that leaves something to measure.
    pub(crate) fn settled(mut self) -> Self {
        if self.quick {
            self.rounds = self.rounds.min(2);
            self.seconds = 1;
            self.warm_up = self.warm_up.min(0.3);
        }
        self.warm_up = self.warm_up.clamp(0.0, f64::from(self.seconds) / 2.0);
        self
    }

    /// Whether parts were left out or hurried, so that the results don't stand for all.
    pub(crate) fn is_partial(&self) -> bool {
        self.quick || !self.only.is_empty() || !self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn something_is_left_to_measure() {
        let parse = |line: &str| Options::parse_from(line.split(' ')).settled();
        let quick = parse("b --quick");
        assert_eq!((quick.rounds, quick.seconds, quick.warm_up), (2, 1, 0.3));
        assert!((parse("b --warm-up 9 --seconds 4").warm_up - 2.0).abs() < 1e-9);
        assert!(
            quick.is_partial()
                && !parse("b").is_partial()
                && parse("b --rows tcp-1-up,memory").is_partial()
        );
    }
}
