//! Which counters of a session were seen: a ring of bits over the last 8,192 (RFC 6479).

/// Counters the ring holds, a power of two.
pub(crate) const RING_BITS: u64 = 8_192;

const WORD_BITS: u64 = u64::BITS as u64;
const WORDS: u64 = RING_BITS / WORD_BITS;

/// How far behind the highest a counter may be. One word of the ring is always partly in the future.
pub(crate) const WINDOW: u64 = RING_BITS - WORD_BITS;

/// The replay window of one session.
pub(crate) struct ReplayWindow {
    /// The lowest counter that is above all seen; 0 when none was.
    next: u64,
    ring: [u64; WORDS as usize],
}

impl ReplayWindow {
    pub(crate) const fn new() -> Self {
        Self {
            next: 0,
            ring: [0; WORDS as usize],
        }
    }

    /// Whether `counter` is new, and if so remembers it. To be asked only once the datagram is known to be authentic.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        if counter == u64::MAX {
            return false;
        }
        if counter >= self.next {
            self.advance(counter);
        } else if self.next - 1 - counter > WINDOW {
            return false;
        }
        let word = &mut self.ring[Self::word(counter) as usize];
        let bit = 1 << (counter % WORD_BITS);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Makes `counter` the highest: words between the old highest and it hold bits of an earlier turn.
    fn advance(&mut self, counter: u64) {
        // Before the first counter word 0 is current and empty, as after construction.
        let current = self.next.saturating_sub(1) / WORD_BITS;
        let turned = (counter / WORD_BITS - current).min(WORDS);
        for step in 1..=turned {
            self.ring[((current + step) % WORDS) as usize] = 0;
        }
        self.next = counter + 1;
    }

    const fn word(counter: u64) -> u64 {
        (counter / WORD_BITS) % WORDS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn table() {
        let far = RING_BITS * 5;
        let table: &[(&str, &[(u64, bool)])] = &[
            (
                "in order, each once",
                &[
                    (0, true),
                    (1, true),
                    (2, true),
                    (2, false),
                    (1, false),
                    (0, false),
                ],
            ),
            (
                "first is not zero",
                &[(9, true), (0, true), (8, true), (9, false), (0, false)],
            ),
            (
                "backwards",
                &[
                    (3, true),
                    (2, true),
                    (1, true),
                    (0, true),
                    (0, false),
                    (3, false),
                ],
            ),
            (
                "oldest in the window",
                &[(WINDOW, true), (0, true), (0, false)],
            ),
            (
                "just too old",
                &[(WINDOW + 1, true), (0, false), (1, true), (1, false)],
            ),
            (
                "a jump of a whole turn clears all",
                &[
                    (5, true),
                    (5 + RING_BITS, true),
                    (5, false),
                    (6, false),
                    (5 + RING_BITS - 1, true),
                ],
            ),
            (
                "a jump of many turns",
                &[
                    (1, true),
                    (far, true),
                    (far - WINDOW, true),
                    (far - WINDOW - 1, false),
                    (far, false),
                    (far + 1, true),
                ],
            ),
            (
                "same slot of the next turn",
                &[
                    (70, true),
                    (70 + RING_BITS, true),
                    (70 + RING_BITS, false),
                    (70, false),
                ],
            ),
            (
                "edge of a word",
                &[
                    (63, true),
                    (64, true),
                    (63, false),
                    (65, true),
                    (127, true),
                    (128, true),
                    (64, false),
                ],
            ),
            (
                "the greatest counter is none",
                &[
                    (u64::MAX, false),
                    (u64::MAX - 1, true),
                    (u64::MAX - 1, false),
                    (u64::MAX, false),
                    (0, false),
                ],
            ),
        ];
        for (name, steps) in table {
            let mut window = ReplayWindow::new();
            for (at, (counter, expected)) in steps.iter().enumerate() {
                assert_eq!(
                    window.accept(*counter),
                    *expected,
                    "{name}, step {at}: {counter}"
                );
            }
        }
    }

    #[test]
    fn a_full_window_backwards_and_again() {
        let mut window = ReplayWindow::new();
        assert!(window.accept(WINDOW));
        assert!((0..WINDOW).rev().all(|counter| window.accept(counter)));
        assert!((0..=WINDOW).all(|counter| !window.accept(counter)));
    }

    proptest! {
        /// A set of everything seen, which nothing leaves, is the model.
        #[test]
        fn agrees_with_a_set(
            start in prop_oneof![Just(0), 0..1_000u64, Just(u64::MAX - 40_000)],
            steps in prop::collection::vec(prop_oneof![
                8 => -100..100i64, 2 => -9_000..9_000i64, 1 => -20_000..20_000i64,
            ], 1..400),
        ) {
            let mut window = ReplayWindow::new();
            let mut seen = BTreeSet::new();
            let mut at = start;
            for step in steps {
                at = at.saturating_add_signed(step).min(u64::MAX - 1);
                let highest = seen.last().copied().unwrap_or(0);
                let too_old = highest > at && highest - at > WINDOW;
                let expected = !too_old && !seen.contains(&at);
                prop_assert_eq!(window.accept(at), expected, "{} with highest {}", at, highest);
                if expected {
                    seen.insert(at);
                }
            }
        }
    }
}
