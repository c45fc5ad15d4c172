//! Which sizes pass: a ladder of echo requests, judged by pure functions.
//!
//! All sizes are sent in one go, four rounds of the whole ladder, so that every size is tried four times spread
//! over the probe with smaller ones in between. A size has failed when all its tries did although smaller ones
//! passed; at a loss of 2 % that happens by chance once in six million sizes.

use std::collections::BTreeSet;

/// Tries of each size.
pub(crate) const TRIES: usize = 4;
/// Sizes of one ladder at most.
const STEPS: u32 = 32;
/// MTUs that exist: minimum of IPv6, tunnels, DSL's PPP, Ethernet and what clouds make of it.
const COMMON: [u32; 16] = [
    576, 1000, 1200, 1280, 1360, 1380, 1400, 1420, 1440, 1450, 1460, 1480, 1492, 1500, 8921, 9000,
];

/// What is known of the largest size that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Largest that passed.
    pub(crate) passed: Option<u32>,
    /// Smallest, above all that passed, that failed.
    pub(crate) failed: Option<u32>,
}

/// The first ladder: from the smallest to the largest size, both included.
pub(crate) fn coarse(smallest: u32, largest: u32) -> Vec<u32> {
    let step = ((largest.saturating_sub(smallest)) / STEPS).max(1);
    let mut sizes: BTreeSet<u32> = (smallest..=largest).step_by(step as usize).collect();
    sizes.extend(COMMON);
    sizes.insert(largest);
    sizes
        .into_iter()
        .filter(|size| (smallest..=largest).contains(size))
        .collect()
}

/// The ladder between two bounds; the passed size is in it as the proof that the path still works. Empty when
/// nothing lies between them.
pub(crate) fn between(passed: u32, failed: u32) -> Vec<u32> {
    let gap = failed.saturating_sub(passed);
    if gap <= 1 {
        return Vec::new();
    }
    let step = gap.div_ceil(STEPS).max(1);
    (passed..failed).step_by(step as usize).collect()
}

/// Tunnel sizes up to its MTU: dense just below it, where the headers of one more encapsulation would bite.
pub(crate) fn tunnel(smallest: u32, mtu: u32) -> Vec<u32> {
    let below = [0, 8, 20, 28, 40, 60, 80, 100, 120, 140].map(|less: u32| mtu.saturating_sub(less));
    let sizes: BTreeSet<u32> = COMMON.into_iter().chain(below).collect();
    sizes
        .into_iter()
        .filter(|size| (smallest..=mtu).contains(size))
        .collect()
}

/// What the tries say. `tries` is each size with whether it passed, in the order sent.
pub(crate) fn judge(tries: &[(u32, bool)]) -> Bounds {
    let passed = tries
        .iter()
        .filter(|(_, passed)| *passed)
        .map(|(size, _)| *size)
        .max();
    let Some(largest) = passed else {
        return Bounds {
            passed,
            failed: None,
        };
    };
    let failed = tries
        .iter()
        .map(|(size, _)| *size)
        .filter(|size| *size > largest)
        .min();
    // Without enough tries nothing has failed yet.
    let failed =
        failed.filter(|failed| tries.iter().filter(|(size, _)| size == failed).count() >= TRIES);
    // Nor when the path went silent altogether while it was tried: something smaller must have passed after the
    // first and before the last of its tries.
    let failed = failed.filter(|failed| {
        let places: Vec<usize> = tries
            .iter()
            .enumerate()
            .filter(|(_, (size, _))| size == failed)
            .map(|(place, _)| place)
            .collect();
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return false;
        };
        tries[*first..*last].iter().any(|(_, passed)| *passed)
    });
    Bounds { passed, failed }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sends ladder after ladder over a made-up path.
    fn probe(smallest: u32, largest: u32, mut passes: impl FnMut(u32) -> bool) -> (Bounds, usize) {
        let mut rounds = 0;
        let mut tries = Vec::new();
        let mut sizes = coarse(smallest, largest);
        let mut bounds = Bounds {
            passed: None,
            failed: None,
        };
        while !sizes.is_empty() && rounds < 5 {
            rounds += 1;
            tries.clear();
            for _ in 0..TRIES {
                tries.extend(sizes.iter().map(|size| (*size, passes(*size))));
            }
            let now = judge(&tries);
            bounds = Bounds {
                passed: now.passed.max(bounds.passed),
                failed: now.failed.or(bounds.failed),
            };
            sizes = match bounds {
                Bounds {
                    passed: Some(passed),
                    failed: Some(failed),
                } => between(passed, failed),
                _ => Vec::new(),
            };
        }
        (bounds, rounds)
    }

    #[test]
    fn the_exact_limit_is_found_in_two_ladders() {
        for limit in [600, 1279, 1280, 1392, 1419, 1452, 1492, 1499] {
            let (bounds, rounds) = probe(576, 1500, |size| size <= limit);
            assert_eq!(
                bounds,
                Bounds {
                    passed: Some(limit),
                    failed: Some(limit + 1)
                }
            );
            assert!(rounds <= 2);
        }
        let (bounds, rounds) = probe(576, 9000, |size| size <= 1500);
        assert_eq!((bounds.passed, bounds.failed), (Some(1500), Some(1501)));
        assert!(rounds <= 3);
    }

    #[test]
    fn a_clear_path_and_a_dead_one_need_one_ladder() {
        assert_eq!(
            probe(576, 1500, |_| true),
            (
                Bounds {
                    passed: Some(1500),
                    failed: None
                },
                1
            )
        );
        assert_eq!(
            probe(576, 1500, |_| false),
            (
                Bounds {
                    passed: None,
                    failed: None
                },
                1
            )
        );
    }

    #[test]
    fn a_path_that_falls_silent_has_no_limit() {
        let mut sent = 0;
        let sizes = coarse(576, 1500).len();
        let (bounds, _) = probe(576, 1500, |size| {
            sent += 1;
            sent <= sizes && size <= 1300
        });
        // Sizes above 1300 failed four times, but nothing passed after the first round's small ones.
        assert_eq!(bounds.failed, None);
    }

    #[test]
    fn fewer_than_four_tries_prove_nothing() {
        assert_eq!(
            judge(&[(1000, true), (1400, false), (1000, true), (1400, false)]).failed,
            None
        );
    }

    #[test]
    fn tunnel_sizes_end_at_the_mtu() {
        let sizes = tunnel(40, 1420);
        assert_eq!((sizes.first(), sizes.last()), (Some(&576), Some(&1420)));
        assert!(sizes.contains(&1280) && sizes.contains(&1340));
        assert!(tunnel(60, 9000).contains(&8920));
    }

    proptest! {
        #[test]
        fn random_loss_never_moves_the_limit_up(limit in 576u32..1500, seed in any::<u64>()) {
            let mut state = seed;
            let (bounds, _) = probe(576, 1500, |size| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                size <= limit && (state >> 33) % 50 != 0
            });
            prop_assert!(bounds.passed.is_none_or(|passed| passed <= limit));
            prop_assert!(bounds.failed.is_none_or(|failed| failed > limit), "{bounds:?} for {limit}");
        }
    }
}
