//! The machine, as part of the result.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use wirespeed_facts::{Scope, snapshot};

use crate::placement;
use crate::proc;

/// What a reader has to know of the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct MachineFacts {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) system: String,
    pub(crate) iperf3: String,
    pub(crate) load_before: String,
    /// Date and time, UTC.
    pub(crate) begun: String,
    pub(crate) wirespeed: &'static str,
    /// Nanoseconds from core to core and back beside each sample: lowest, median, highest.
    pub(crate) core_to_core: Option<[f64; 3]>,
    /// Tasks of others that wanted to run at the beginnings of the samples, on average.
    pub(crate) others_running: Option<f64>,
}

impl MachineFacts {
    pub(crate) fn read() -> Self {
        let facts = snapshot(&Scope {
            interface: Some("lo".to_owned()),
            ..Scope::default()
        });
        let or_unknown =
            |value: Option<&String>| value.cloned().unwrap_or_else(|| "unknown".to_owned());
        Self {
            processor: or_unknown(facts.cpu.model.value()),
            cores: facts.cpu.online,
            kernel: format!("{}, {}", facts.host.kernel, facts.host.architecture),
            system: or_unknown(facts.host.system.value()),
            iperf3: or_unknown(
                facts
                    .programs
                    .get("iperf3")
                    .and_then(|version| version.value()),
            ),
            load_before: proc::load_averages().unwrap_or_else(|| "unknown".to_owned()),
            begun: date(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default(),
            ),
            wirespeed: env!("CARGO_PKG_VERSION"),
            core_to_core: placement::core_to_core().map(|distance| [distance; 3]),
            others_running: None,
        }
    }

    /// How far apart the cores are, in words.
    pub(crate) fn distance(&self) -> String {
        match self.core_to_core {
            Some([low, middle, high]) => {
                format!("{middle:.0} ns ({low:.0} – {high:.0} beside the samples)")
            }
            None => "unknown".to_owned(),
        }
    }
}

/// `2026-11-21 09:30`, by the civil-from-days algorithm (<https://howardhinnant.github.io/date_algorithms.html>).
fn date(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        seconds / 3_600 % 24,
        seconds / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400, "2000-02-29 00:00"),
            (1_795_253_400, "2026-11-21 09:30"),
        ] {
            assert_eq!(date(Duration::from_secs(seconds)), text);
        }
    }
}
