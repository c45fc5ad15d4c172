//! Who is measured when: every row in turn, and for each row all implementations in turn, in an order that changes from round
//! to round, so that a drift of the machine helps nobody.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::implementation::Implementation;
use crate::rows::Row;

/// One sample to be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// Counted from 1.
    pub(crate) round: u32,
    pub(crate) row: &'a Row,
    pub(crate) implementation: &'a Implementation,
    pub(crate) position: usize,
}

/// All samples, in order. A row or an implementation that is not measured in every round is so in the first.
pub(crate) fn steps<'a>(
    rows: &[&'a Row],
    implementations: &'a [Implementation],
    rounds: u32,
    seed: u64,
) -> Vec<Step<'a>> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = Vec::new();
    for round in 0..rounds {
        for &row in rows.iter().filter(|row| !row.rare || round % 3 == 0) {
            let mut order: Vec<&Implementation> = implementations
                .iter()
                .filter(|implementation| {
                    implementation.program.is_some() || row.kind.without_tunnel()
                })
                .filter(|implementation| implementation.every_round || round % 2 == 0)
                .collect();
            order.shuffle(&mut random);
            steps.extend(
                order
                    .into_iter()
                    .enumerate()
                    .map(|(position, implementation)| Step {
                        round: round + 1,
                        row,
                        implementation,
                        position,
                    }),
            );
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ROWS;

    fn implementation(name: &'static str, every_round: bool) -> Implementation {
        let program = (name != "bare").then(|| name.into());
        Implementation {
            name,
            version: String::new(),
            program,
            arguments: &[],
            every_round,
        }
    }

    #[test]
    fn everybody_takes_turns() {
        let all = [
            implementation("bare", false),
            implementation("a", true),
            implementation("b", true),
            implementation("c", false),
        ];
        let rows: Vec<&Row> = ROWS.iter().collect();
        let steps = steps(&rows, &all, 7, 1);
        let count = |row: &str, name: &str| {
            steps
                .iter()
                .filter(|step| step.row.name == row && step.implementation.name == name)
                .count()
        };
        assert_eq!(
            (
                count("tcp-1-up", "a"),
                count("tcp-1-up", "c"),
                count("tcp-1-up", "bare")
            ),
            (7, 4, 4)
        );
        assert_eq!(
            (
                count("memory", "a"),
                count("memory", "c"),
                count("memory", "bare")
            ),
            (3, 2, 0)
        );
        let first = |step: &&Step<'_>| step.position == 0 && step.row.name == "tcp-1-up";
        let mut firsts: Vec<_> = steps
            .iter()
            .filter(first)
            .map(|step| step.implementation.name)
            .collect();
        firsts.dedup();
        assert!(firsts.len() > 1, "the order changes: {firsts:?}");
    }
}
