//! Sets of cores as the kernel writes them: `0-3,8`, and masks like `ff,ffffffff`.

/// No kernel has more.
const MOST_CORES: u32 = 8192;

/// Numbers of `0-3,8`, ascending; rubbish among them is left out.
pub(crate) fn list(text: &str) -> Vec<u32> {
    let mut cores: Vec<u32> = text
        .trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        })
        .flat_map(|(first, last): (u32, u32)| first..=last.min(MOST_CORES - 1))
        .collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// Numbers of the bits that are set in words of 32 bits in hexadecimal, the highest word first.
pub(crate) fn mask(text: &str) -> Vec<u32> {
    let words = text.trim().rsplit(',').take(MOST_CORES as usize / 32);
    words
        .zip((0..).step_by(32))
        .flat_map(|(word, first)| {
            let word = u32::from_str_radix(word, 16).unwrap_or(0);
            (0..32)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| first + bit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_masks_name_cores() {
        assert_eq!(list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(list("\n"), [] as [u32; 0]);
        assert_eq!(mask("00000000,0000000c\n"), [2, 3]);
        assert_eq!(mask("1,00000001"), [0, 32]);
        assert_eq!(mask("0"), [] as [u32; 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_bounded_set(text in "[0-9a-f,-]{0,60}") {
            for cores in [list(&text), mask(&text)] {
                prop_assert!(cores.is_sorted_by(|a, b| a < b));
                prop_assert!(cores.last().is_none_or(|last| *last < MOST_CORES));
            }
        }

        #[test]
        fn what_is_written_is_read(cores in proptest::collection::btree_set(0..MOST_CORES, 0..20)) {
            let text = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(list(&text), cores.into_iter().collect::<Vec<_>>());
        }
    }
}
