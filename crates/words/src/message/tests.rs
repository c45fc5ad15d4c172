use super::*;
use crate::{say, within};

fn bundle_of(text: &str, language: Language) -> Bundle {
    read(language, &[("test.ftl", text)])
}

fn said(bundle: &Bundle, key: &str, count: impl Into<Value<'static>>) -> Option<String> {
    let values = [("count", count.into().0)].into_iter().collect();
    filled_in(bundle, key, &values)
}

#[test]
fn plurals_and_numbers_follow_the_language() {
    let english = bundle_of(
        "lost = { $count ->\n    [one] one packet\n   *[other] { $count } packets\n }",
        Language::English,
    );
    let french = bundle_of(
        "lost = { $count ->\n    [one] { $count } paquet\n   *[other] { $count } paquets\n }",
        Language::French,
    );
    for (count, in_english, in_french) in [
        (0_u64, "0 packets", "0 paquet"),
        (1, "one packet", "1 paquet"),
        (2, "2 packets", "2 paquets"),
        (12_345, "12\u{a0}345 packets", "12\u{202f}345 paquets"),
    ] {
        assert_eq!(said(&english, "lost", count).as_deref(), Some(in_english));
        assert_eq!(said(&french, "lost", count).as_deref(), Some(in_french));
    }
    assert_eq!(said(&french, "lost", 2.5).as_deref(), Some("2,5 paquets"));
}

#[test]
fn one_of_what_is_most_often_several_is_one() {
    let again = |count: f64| say!("html-retransmits-words", side = "tunnel", count = count);
    let times = |times: u64| {
        say!(
            "report-exchanges-times",
            side = "s",
            reason = "r",
            times = times
        )
    };
    let held_back = |count: u64| {
        say!(
            "cloud-limit-because",
            count = count,
            interface = "ens5",
            share = "1 %",
            allowance = "pps"
        )
    };
    within(Language::English, || {
        assert_eq!(again(0.0), "tunnel: 0 segments sent again.");
        assert_eq!(again(1.0), "tunnel: 1 segment sent again.");
        assert_eq!(times(1), "s: r, once");
        assert_eq!(times(2), "s: r, 2 times");
        assert!(held_back(1).contains(" 1 packet of "), "{}", held_back(1));
    });
    within(Language::French, || {
        assert_eq!(again(1.0), "tunnel\u{202f}: 1 segment retransmis.");
        assert_eq!(again(2.0), "tunnel\u{202f}: 2 segments retransmis.");
        assert!(held_back(1).contains(" 1 paquet de "), "{}", held_back(1));
    });
}

#[test]
fn places_can_be_told() {
    let french = bundle_of(
        "share = { NUMBER($count, minimumFractionDigits: 1, maximumFractionDigits: 1) }",
        Language::French,
    );
    assert_eq!(said(&french, "share", 2.0).as_deref(), Some("2,0"));
}

#[test]
fn what_is_filled_in_is_no_text_of_ours() {
    let english = bundle_of("name = { $count }!", Language::English);
    let hostile = "{ $other } \u{2068}";
    assert_eq!(
        said(&english, "name", hostile).as_deref(),
        Some("{ $other } \u{2068}!")
    );
}

#[test]
fn a_key_is_told_in_the_language_of_the_moment() {
    let upload = || say!("direction-upload");
    assert_eq!(within(Language::English, upload), "upload");
    assert_eq!(within(Language::French, upload), "envoi");
    assert_eq!(message("no-such-key", []), "no-such-key");
}
