//! Which counters of a session were seen: a ring of bits over the last 8,192.
//!
//! A counter's bit is at the counter modulo the ring's size, as in RFC 6479. Other than there, a jump clears exactly the
//! bits of the counters it passes and not whole words, so that all of the ring is window.
//!
//! The ring grows with the session: as long as no counter has reached its size there is nothing it could forget, and
//! most sessions of ten thousand peers never need more than a word.

/// How many counters, the highest seen among them, can be told apart. A power of two.
pub(crate) const WINDOW: u64 = 8_192;

const WORD_BITS: u64 = u64::BITS as u64;

/// The replay window of one session.
#[derive(Default)]
pub(crate) struct ReplayWindow {
    /// The lowest counter that is above all seen; 0 when none was.
    next: u64,
    /// A power of two of words, or none. More bits than `next`, or as many as the window.
    ring: Box<[u64]>,
}

impl ReplayWindow {
    /// Whether `counter` is new, and if so remembers it. To be asked only once the datagram is known to be authentic.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        if counter == u64::MAX {
            return false;
        }
        if counter >= self.next {
            self.advance(counter);
        } else if self.next - counter > WINDOW {
            return false;
        }
        let at = self.word(counter);
        let word = &mut self.ring[at];
        let bit = 1 << (counter % WORD_BITS);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Makes `counter` the highest. Its bit and those of the counters passed may be left from an earlier turn.
    fn advance(&mut self, counter: u64) {
        let needed = (counter + 1).min(WINDOW);
        if self.bits() < needed {
            self.grow(needed);
        }
        let passed = counter - self.next;
        if passed == 0 {
            let at = self.word(counter);
            self.ring[at] &= !(1 << (counter % WORD_BITS));
        } else if passed >= self.bits() {
            self.ring.fill(0);
        } else {
            self.clear(self.next, counter + 1);
        }
        self.next = counter + 1;
    }

    /// No counter has reached the old size, so each bit stays where it is.
    fn grow(&mut self, bits: u64) {
        let words = bits.next_power_of_two().div_ceil(WORD_BITS);
        let mut ring = std::mem::take(&mut self.ring).into_vec();
        ring.reserve_exact(words as usize - ring.len());
        ring.resize(words as usize, 0);
        self.ring = ring.into_boxed_slice();
    }

    fn clear(&mut self, from: u64, end: u64) {
        let mut counter = from;
        while counter < end {
            let first = counter % WORD_BITS;
            let count = (WORD_BITS - first).min(end - counter);
            let bits = (u64::MAX >> (WORD_BITS - count)) << first;
            let at = self.word(counter);
            self.ring[at] &= !bits;
            counter += count;
        }
    }

    const fn bits(&self) -> u64 {
        self.ring.len() as u64 * WORD_BITS
    }

    const fn word(&self, counter: u64) -> usize {
        (counter / WORD_BITS) as usize & (self.ring.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn table() {
        let far = WINDOW * 5;
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
                &[(WINDOW - 1, true), (0, true), (0, false)],
            ),
            (
                "just too old",
                &[(WINDOW, true), (0, false), (1, true), (1, false)],
            ),
            (
                "a jump of a whole turn clears all",
                &[
                    (5, true),
                    (5 + WINDOW, true),
                    (5, false),
                    (6, true),
                    (6, false),
                    (5 + WINDOW - 1, true),
                ],
            ),
            (
                "a jump of many turns",
                &[
                    (1, true),
                    (far, true),
                    (far - WINDOW + 1, true),
                    (far - WINDOW, false),
                    (far, false),
                    (far + 1, true),
                ],
            ),
            (
                "same slot of the next turn",
                &[
                    (70, true),
                    (70 + WINDOW, true),
                    (70 + WINDOW, false),
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
            let mut window = ReplayWindow::default();
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
        let mut window = ReplayWindow::default();
        assert!(window.accept(WINDOW - 1));
        assert!((0..WINDOW - 1).rev().all(|counter| window.accept(counter)));
        assert!((0..WINDOW).all(|counter| !window.accept(counter)));
    }

    #[test]
    fn memory_grows_with_the_session_and_no_further_than_the_window() {
        let mut window = ReplayWindow::default();
        let mut bits = |counter| {
            assert!(window.accept(counter));
            window.bits()
        };
        let grown = [0, 63, 64, 127, 1_000, 8_191, 8_192, 1 << 40].map(&mut bits);
        assert_eq!(grown, [64, 64, 128, 128, 1_024, 8_192, 8_192, 8_192]);
        let mut at_once = ReplayWindow::default();
        assert!(at_once.accept(1 << 40) && at_once.accept((1 << 40) - 1));
        assert_eq!(at_once.bits(), WINDOW);
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
            let mut window = ReplayWindow::default();
            let mut seen = BTreeSet::new();
            let mut at = start;
            for step in steps {
                at = at.saturating_add_signed(step).min(u64::MAX - 1);
                let highest = seen.last().copied().unwrap_or(0);
                let too_old = highest > at && highest - at >= WINDOW;
                let expected = !too_old && !seen.contains(&at);
                prop_assert_eq!(window.accept(at), expected, "{} with highest {}", at, highest);
                if expected {
                    seen.insert(at);
                }
            }
        }
    }
}
