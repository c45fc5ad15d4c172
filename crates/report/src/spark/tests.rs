use proptest::prelude::*;

use super::*;

/// A load of tenths of a second.
fn tenths(values: &[f64]) -> Run {
    let at = |index: usize| index as f64 * 0.1;
    let stretch = |(index, value): (usize, &f64)| Stretch {
        start: 2.0 + at(index),
        seconds: 0.1,
        value: *value,
    };
    values.iter().enumerate().map(stretch).collect()
}

fn drawn(sides: &[Vec<Run>], room: usize) -> (f64, Vec<String>) {
    let fitted = fit(sides, room).unwrap();
    let most = fitted.most();
    let lines = (0..sides.len()).map(|side| fitted.draw(side, most, false));
    (fitted.step, lines.collect())
}

#[test]
fn a_character_is_a_tenth_where_there_is_room() {
    let rising = tenths(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]);
    let (step, lines) = drawn(&[vec![rising.clone(), rising.clone()]], 17);
    assert_eq!((step, lines[0].as_str()), (0.1, "▁▂▃▄▅▆▇█ ▁▂▃▄▅▆▇█"));
    // Means of two where there is not.
    let (step, lines) = drawn(&[vec![rising.clone(), rising]], 16);
    assert_eq!((step, lines[0].as_str()), (0.2, "▁▃▆█ ▁▃▆█"));
}

#[test]
fn both_sides_have_one_step_and_one_scale() {
    let (bare, tunnel) = (tenths(&[100.0; 40]), tenths(&[40.0; 10]));
    let (step, lines) = drawn(&[vec![bare], vec![tunnel]], 20);
    assert_eq!((step, lines[0].as_str()), (0.2, "████████████████████"));
    assert_eq!(lines[1], "▄▄▄▄▄");
}

#[test]
fn what_was_not_measured_is_a_gap() {
    let mut run = tenths(&[8.0; 12]);
    run.drain(4..7);
    let fitted = fit(&[vec![run, Run::new()]], 40).unwrap();
    assert_eq!(fitted.draw(0, 8.0, false), "████···█████ ·");
    assert_eq!(fitted.draw(0, 8.0, true), "9999...99999 .");
    assert!(fitted.has_gaps(0));
    assert_eq!(fitted.span(0), Some((8.0, 8.0)));
    assert_eq!(fit(&[vec![Run::new()], Vec::new()], 40), None);
}

#[test]
fn a_scrap_at_the_end_is_no_character_of_its_own() {
    let mut run = tenths(&[4.0; 7]);
    run.push(Stretch {
        start: 2.7,
        seconds: 0.003,
        value: 0.0,
    });
    assert_eq!(drawn(&[vec![run]], 40).1, ["███████"]);
}

#[test]
fn long_intervals_are_not_cut_into_pieces() {
    let seconds = |count: u32| -> Run {
        let one = |at: u32| Stretch {
            start: f64::from(at),
            seconds: 1.0,
            value: 5.0,
        };
        (0..count).map(one).collect()
    };
    let (step, lines) = drawn(&[vec![seconds(8)]], 80);
    assert_eq!((step, lines[0].as_str()), (1.0, "████████"));
}

#[test]
fn more_loads_than_room_are_taken_together() {
    let loads: Vec<Run> = (0..80).map(|at| tenths(&[f64::from(at); 80])).collect();
    let fitted = fit(&[loads], 50).unwrap();
    let line = fitted.draw(0, fitted.most(), false);
    assert_eq!((fitted.parted, line.chars().count()), (false, 40));
    assert!((fitted.step - 16.0).abs() < 1e-9, "{}", fitted.step);
    assert!(line.starts_with('▁') && line.ends_with('█'), "{line}");
}

#[test]
fn nothing_at_all_is_the_lowest_character() {
    assert_eq!(drawn(&[vec![tenths(&[0.0; 3])]], 10).1, ["▁▁▁"]);
}

fn stretches() -> impl Strategy<Value = Run> {
    let number = prop_oneof![
        8 => 0.0..1e10,
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(f64::MAX)],
    ];
    let length =
        prop_oneof![8 => 0.05..2.0, 1 => prop_oneof![Just(0.0), Just(1e12), Just(f64::NAN)]];
    let start =
        prop_oneof![8 => 0.0..100.0, 1 => prop_oneof![Just(-5.0), Just(1e300), Just(f64::NAN)]];
    let one = (start, length, number).prop_map(|(start, seconds, value)| Stretch {
        start,
        seconds,
        value,
    });
    prop::collection::vec(one, 0..40)
}

proptest! {
    /// Whatever a far end sends.
    #[test]
    fn a_line_has_room_and_shows_nothing_that_was_not_there(
        sides in prop::collection::vec(prop::collection::vec(stretches(), 0..12), 1..3),
        room in 1_usize..130,
        ascii: bool,
    ) {
        let sound: Vec<f64> = sides.iter().flatten().flatten().filter(|one| one.is_sound()).map(|one| one.value).collect();
        let Some(fitted) = fit(&sides, room) else {
            prop_assert!(sound.is_empty());
            return Ok(());
        };
        let most = fitted.most();
        let highest = sound.iter().copied().fold(0.0, f64::max);
        prop_assert!(most <= highest * (1.0 + 1e-9), "{most} of {highest}");
        prop_assert!(fitted.step > 0.0);
        for side in 0..sides.len() {
            let line = fitted.draw(side, most, ascii);
            prop_assert!(line.chars().count() <= room, "{line:?} in {room}");
            prop_assert!(!ascii || line.is_ascii(), "{line:?}");
            prop_assert_eq!(line.chars().any(|c| c == gap(ascii)), fitted.has_gaps(side));
        }
    }

    /// The mean of the characters of a run without gaps is the run's.
    #[test]
    fn fewer_characters_keep_the_mean(values in prop::collection::vec(0.0..1e9_f64, 20..200), room in 4_usize..60) {
        let runs = vec![tenths(&values)];
        let fitted = fit(&[runs], room).unwrap();
        let cells = &fitted.sides[0][0];
        // The last character is longer or shorter than the others, so the first ones are compared.
        let whole = cells.len() - 1;
        let covered = (whole as f64 * fitted.step / 0.1).round() as usize;
        if covered > 0 {
            let expected = values[..covered].iter().sum::<f64>() / covered as f64;
            let got = cells[..whole].iter().map(|cell| cell.unwrap()).sum::<f64>() / whole as f64;
            prop_assert!((got - expected).abs() <= 1e-6 * expected.max(1.0), "{got} of {expected}");
        }
    }
}
