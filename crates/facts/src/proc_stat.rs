//! Time per core, from `/proc/stat`.

use crate::{CoreTime, files};

/// Numbers of the online cores, and the time of each since boot; empty where `/proc/stat` cannot be read.
pub(crate) fn cores() -> (Vec<u32>, Vec<CoreTime>) {
    files::text("/proc/stat")
        .map(|text| parse(&text, ticks_per_second()))
        .unwrap_or_default()
}

/// Clock ticks per second of `/proc` (100 everywhere but on rare builds).
pub(crate) fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .filter(|ticks| *ticks > 0)
        .map_or(100.0, |ticks| ticks as f64)
}

pub(crate) fn parse(text: &str, ticks: f64) -> (Vec<u32>, Vec<CoreTime>) {
    text.lines()
        .filter_map(|line| {
            let core = line.strip_prefix("cpu")?;
            let mut fields = core.split_ascii_whitespace();
            // The line of all cores has no number.
            let number: u32 = core
                .starts_with(|first: char| first.is_ascii_digit())
                .then(|| fields.next()?.parse().ok())??;
            let mut fields = fields.map(|field| field.parse::<u64>().unwrap_or(0) as f64 / ticks);
            let mut next = || fields.next().unwrap_or(0.0);
            let (user, nice, system, idle) = (next(), next(), next(), next());
            let (iowait, irq, softirq, steal) = (next(), next(), next(), next());
            // Guest time is part of user time already.
            let time = CoreTime {
                user: user + nice,
                system,
                irq,
                softirq,
                steal,
                idle: idle + iowait,
            };
            Some((number, time))
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_cores() {
        let text =
            "cpu  9 9 9 9\ncpu0 100 20 30 400 50 6 7 8 90 10\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 5\n";
        let (numbers, cores) = parse(text, 100.0);
        assert_eq!(numbers, [0, 1]);
        assert!((cores[0].user - 1.2).abs() < 1e-9);
        assert!((cores[0].idle - 4.5).abs() < 1e-9);
        assert!((cores[1].steal - 0.08).abs() < 1e-9);
    }

    #[test]
    fn this_machine_has_cores() {
        let (_, cores) = cores();
        assert!(!cores.is_empty());
        assert!(cores.iter().any(|core| core.idle + core.user > 0.0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cpu[0-9 ]{0,40}\n){0,5}.{0,40}") {
            for core in parse(&text, 100.0).1 {
                prop_assert!(core.busy_share() >= 0.0 && core.busy_share() <= 1.0);
            }
        }
    }
}
