//! Receive backlog per core, from `/proc/net/softnet_stat` (the same in every network namespace).

use crate::{Softnet, files};

/// One row per online core; empty where the file cannot be read.
pub(crate) fn rows() -> Vec<Softnet> {
    files::text("/proc/thread-self/net/softnet_stat")
        .map(|text| parse(&text))
        .unwrap_or_default()
}

pub(crate) fn parse(text: &str) -> Vec<Softnet> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line
                .split_ascii_whitespace()
                .map(|field| u64::from_str_radix(field, 16).ok());
            Some(Softnet {
                processed: fields.next()??,
                dropped: fields.next()??,
                time_squeeze: fields.next()??,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_hexadecimal() {
        let rows = parse("0000ff00 00000002 0000000a 00000000\nrubbish\n");
        assert_eq!(
            rows,
            [Softnet {
                processed: 0xff00,
                dropped: 2,
                time_squeeze: 10
            }]
        );
    }

    #[test]
    fn this_machine_has_a_row_per_core() {
        assert!(!rows().is_empty());
    }
}
