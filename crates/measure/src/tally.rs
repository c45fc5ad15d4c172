//! Which numbers arrived, in which order (RFC 4737: reordering, RFC 5560: duplicates), in bounded memory.

use std::collections::VecDeque;

/// Numbers beyond this are not ours.
pub(crate) const NUMBERS_AT_MOST: u64 = 8_000_000;
/// Runs of arrivals in order that are remembered. Beyond that, an extent is told as far as it is known.
const RUNS_AT_MOST: usize = 1 << 16;

/// Counts arrivals: a bit for each number, and the runs that arrived in order.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    seen: Vec<u64>,
    /// One more than the highest number (RFC 4737: `NextExp`).
    next: u64,
    arrivals: u64,
    duplicates: u64,
    reordered: u64,
    extent: u64,
    runs: VecDeque<Run>,
}

/// `length` arrivals in a row, each with the number after the one before, and each higher than all earlier ones.
#[derive(Debug)]
struct Run {
    arrival: u64,
    number: u64,
    length: u64,
}

/// Runs of numbers that are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) count: u64,
    pub(crate) longest: u64,
}

impl Tally {
    /// Counts one arrival; a number out of all bounds is ignored.
    pub(crate) fn arrived(&mut self, number: u64) {
        if number >= NUMBERS_AT_MOST {
            return;
        }
        if !self.mark(number) {
            self.duplicates += 1;
            return;
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        if number >= self.next {
            self.next = number + 1;
            self.in_order(arrival, number);
        } else {
            self.reordered += 1;
            self.extent = self.extent.max(arrival - self.first_above(number));
        }
    }

    /// Different numbers that arrived.
    pub(crate) fn received(&self) -> u64 {
        self.arrivals
    }

    /// Arrivals of a number that was there already.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Arrivals after a higher number.
    pub(crate) fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Largest reordering extent: arrivals from the earliest with a higher number to the late one.
    pub(crate) fn extent(&self) -> u64 {
        self.extent
    }

    /// One more than the highest number that arrived.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// What is missing below the highest number that arrived.
    pub(crate) fn gaps(&self) -> Gaps {
        let mut gaps = Gaps::default();
        let mut run = 0;
        for number in 0..self.next {
            if self.has(number) {
                run = 0;
            } else {
                gaps.count += u64::from(run == 0);
                run += 1;
                gaps.longest = gaps.longest.max(run);
            }
        }
        gaps
    }

    /// `false` = it was there already.
    fn mark(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, number % 64);
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        let before = self.seen[word];
        self.seen[word] |= 1 << bit;
        before != self.seen[word]
    }

    fn has(&self, number: u64) -> bool {
        let word = self.seen.get((number / 64) as usize);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn in_order(&mut self, arrival: u64, number: u64) {
        if let Some(last) = self.runs.back_mut()
            && last.arrival + last.length == arrival
            && last.number + last.length == number
        {
            last.length += 1;
            return;
        }
        if self.runs.len() == RUNS_AT_MOST {
            self.runs.pop_front();
        }
        self.runs.push_back(Run {
            arrival,
            number,
            length: 1,
        });
    }

    /// The earliest arrival with a higher number. The earliest one was higher than all before it, so it is in a run.
    fn first_above(&self, number: u64) -> u64 {
        let below = self
            .runs
            .partition_point(|run| run.number + run.length - 1 <= number);
        self.runs.get(below).map_or(self.arrivals - 1, |run| {
            run.arrival + (number + 1).saturating_sub(run.number)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(numbers: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for number in numbers {
            tally.arrived(*number);
        }
        tally
    }

    fn told(numbers: &[u64]) -> (u64, u64, u64, u64) {
        let tally = tally(numbers);
        (
            tally.received(),
            tally.duplicates(),
            tally.reordered(),
            tally.extent(),
        )
    }

    #[test]
    fn order_loss_and_duplicates_are_told_apart() {
        assert_eq!(told(&[0, 1, 2, 3]), (4, 0, 0, 0));
        // A gap alone is no reordering.
        assert_eq!(told(&[0, 2, 3]), (3, 0, 0, 0));
        // RFC 4737, 4.2.4: 1 2 3 7 4 5 6 8: three late ones, with extents 1, 2, 3.
        assert_eq!(told(&[1, 2, 3, 7, 4, 5, 6, 8]), (8, 0, 3, 3));
        assert_eq!(told(&[0, 1, 1, 0, 2]), (3, 2, 0, 0));
        // A late copy of a late one counts once.
        assert_eq!(told(&[1, 2, 0, 0]), (3, 1, 1, 2));
        assert_eq!(told(&[0, NUMBERS_AT_MOST, u64::MAX]), (1, 0, 0, 0));
    }

    #[test]
    fn gaps_are_runs_of_what_is_missing() {
        assert_eq!(tally(&[]).gaps(), Gaps::default());
        assert_eq!(
            tally(&[0, 3, 4, 9]).gaps(),
            Gaps {
                count: 2,
                longest: 4
            }
        );
        assert_eq!(tally(&[0, 3, 4, 9]).next(), 10);
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut tally = Tally::default();
        for number in (0..4 * RUNS_AT_MOST as u64).map(|number| number * 2) {
            tally.arrived(number);
        }
        tally.arrived(1);
        assert!(tally.runs.len() <= RUNS_AT_MOST && tally.extent() >= RUNS_AT_MOST as u64);
    }

    proptest! {
        #[test]
        fn as_the_definitions_say(numbers in proptest::collection::vec(0..60_u64, 0..120)) {
            let tally = tally(&numbers);
            let mut unique: Vec<u64> = Vec::new();
            for number in &numbers {
                if !unique.contains(number) {
                    unique.push(*number);
                }
            }
            let late: Vec<usize> = (0..unique.len())
                .filter(|at| unique[..*at].iter().any(|before| *before > unique[*at]))
                .collect();
            let extent = |at: &usize| at - unique.iter().position(|before| *before > unique[*at]).unwrap();
            prop_assert_eq!(tally.received(), unique.len() as u64);
            prop_assert_eq!(tally.duplicates(), (numbers.len() - unique.len()) as u64);
            prop_assert_eq!(tally.reordered(), late.len() as u64);
            prop_assert_eq!(tally.extent(), late.iter().map(extent).max().unwrap_or(0) as u64);
            let missing = (0..tally.next()).filter(|number| !unique.contains(number)).count() as u64;
            let gaps = tally.gaps();
            prop_assert!(gaps.longest <= missing && gaps.count <= missing);
            prop_assert_eq!(gaps.count == 0, missing == 0);
            prop_assert_eq!(tally.next() - missing, tally.received());
        }
    }
}
