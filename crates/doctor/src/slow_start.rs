//! What a connection loses at its start.
//!
//! Slow start doubles the rate with each round trip until something overflows; what was sent beyond is lost in one go and sent
//! again within some round trips (RFC 5681, section 3.1). That says how deep the queue is, not that loss goes on.

use wirespeed_measure::{Interval, Sample};

use crate::Evidence;

/// Recovery from the first loss is over after so many round trips. RFC 6675 and 6937 send half of a window at a time, and
/// some of what is sent again is lost once more: up to nine were seen at 300 Mbit/s and 80 ms with a queue of 20 ms.
const ROUND_TRIPS: f64 = 10.0;
/// It lasts at least this long: intervals are tenths of a second.
const AT_LEAST_SECONDS: f64 = 0.2;
/// So much of what is left of a load after its first loss is looked at in any case.
const LOOKED_AT: f64 = 0.5;
/// Intervals begin up to this much, seconds, beside the tenth they stand for.
const SLACK: f64 = 0.05;

/// What a load sent once its start was over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Later {
    /// Segments sent again.
    pub(crate) again: u64,
    /// Bytes that arrived.
    pub(crate) bytes: f64,
}

/// After the warm-up, and after the recovery from the first loss of all. `None` where the sender does not tell.
pub(crate) fn later(evidence: &Evidence, sample: &Sample) -> Option<Later> {
    let all = Later {
        again: sample.retransmits?,
        bytes: sample.bytes as f64,
    };
    let lost = |interval: &&Interval| interval.retransmits.is_some_and(|again| again > 0);
    let (Some(first), Some(last)) = (sample.intervals.iter().find(lost), sample.intervals.last())
    else {
        return Some(all);
    };
    let end = last.start + last.seconds;
    let recovery = (ROUND_TRIPS * round_trip(evidence))
        .min((end - first.start) * LOOKED_AT)
        .max(AT_LEAST_SECONDS);
    let counted = sample
        .intervals
        .iter()
        .filter(|interval| !interval.warm_up && interval.start > first.start + recovery - SLACK);
    Some(counted.fold(
        Later {
            again: 0,
            bytes: 0.0,
        },
        |sum, interval| Later {
            again: sum.again.saturating_add(interval.retransmits.unwrap_or(0)),
            bytes: sum.bytes + interval.rate * interval.seconds / 8.0,
        },
    ))
}

/// Of the road without load, seconds; 0 where it is not known.
pub(crate) fn round_trip(evidence: &Evidence) -> f64 {
    [&evidence.idle_rtt_tunnel, &evidence.idle_rtt_bare]
        .into_iter()
        .find_map(|rtt| rtt.value()?.median)
        .filter(|rtt| rtt.is_finite() && *rtt > 0.0)
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;
    use wirespeed_measure::{Direction, Interval, Via};

    use super::*;
    use crate::testing::{healthy, rtt, sample};

    fn sent(again: &[u64], round_trip: f64) -> Later {
        let mut evidence = healthy();
        evidence.idle_rtt_tunnel = Known::Value(rtt(round_trip));
        let mut sample = sample(Via::Tunnel, Direction::Upload, 10e6);
        sample.intervals = again
            .iter()
            .enumerate()
            .map(|(index, again)| Interval {
                start: index as f64 / 10.0,
                seconds: 0.1,
                rate: 8e6,
                retransmits: Some(*again),
                congestion_window: None,
                rtt: None,
                warm_up: index < 3,
            })
            .collect();
        sample.retransmits = Some(again[3..].iter().sum());
        later(&evidence, &sample).unwrap()
    }

    #[test]
    fn the_overshoot_of_a_start_is_no_loss_that_goes_on() {
        // As measured at 80 ms with a queue of 20 ms: 10 Mbit/s, and 300 bare and in the tunnel.
        let mut again = [0; 20];
        again[2..4].copy_from_slice(&[2, 20]);
        assert_eq!(sent(&again, 0.08).again, 0);
        again[6..12].copy_from_slice(&[92, 455, 1, 0, 304, 0]);
        again[2..4].fill(0);
        assert_eq!(sent(&again, 0.08).again, 0);
        // The same much later is another loss.
        again[17] = 7;
        assert_eq!(sent(&again, 0.08).again, 7);
    }

    #[test]
    fn loss_that_goes_on_is_counted_with_what_was_sent_meanwhile() {
        // One in a hundred at 10 ms; 8 Mbit/s are 100,000 bytes in a tenth of a second.
        let Later { again, bytes } = sent(&[8, 9, 7, 8, 6, 9, 8, 7, 9, 8], 0.01);
        assert_eq!(again, 55);
        assert!((bytes - 700e3).abs() < 1.0, "{bytes}");
        // However long the road is, half of the load is looked at.
        assert_eq!(sent(&[8, 9, 7, 8, 6, 9, 8, 7, 9, 8], 0.6).again, 41);
    }

    #[test]
    fn without_intervals_all_of_it_counts() {
        let evidence = healthy();
        let mut sample = sample(Via::Tunnel, Direction::Upload, 10e6);
        sample.intervals.clear();
        sample.retransmits = Some(30);
        assert_eq!(later(&evidence, &sample).map(|later| later.again), Some(30));
        sample.retransmits = None;
        assert_eq!(later(&evidence, &sample), None);
    }
}
