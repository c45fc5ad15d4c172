//! The reports for a browser, complete, self-contained, and safe.

#[path = "html/browser.rs"]
mod browser;
#[path = "html/buried.rs"]
mod buried;
#[path = "html/hostile.rs"]
mod hostile;
#[path = "html/in_a_browser.rs"]
mod in_a_browser;
#[path = "html/in_a_terminal.rs"]
mod in_a_terminal;
#[path = "html/pages.rs"]
mod pages;
#[path = "html/records.rs"]
mod records;

use pages::PAGES;
use wirespeed_doctor::Verdict;
use wirespeed_facts::Known;
use wirespeed_measure::Direction;
use wirespeed_report::{DoctorRecord, TestRecord, TuneRecord, html};
use wirespeed_tune::Experiment;
use wirespeed_words::{Language, within};

/// Its policy lets nothing in, and nothing in it asks for anything.
fn assert_self_contained(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"), "{}", &page[..40]);
    assert!(page.contains(r#"http-equiv="Content-Security-Policy" content="default-src 'none';"#));
    for sign in [
        "<script", " src=", "href=", "url(", "@import", "http://", "https://", " style=",
    ] {
        assert!(!page.contains(sign), "{sign} in the page");
    }
}

#[test]
fn every_case_has_a_page_in_both_languages() {
    for path in records::cases() {
        for language in Language::ALL {
            within(language, || {
                let record = records::judged(&path);
                let page = html::doctor(&record, " --far ssh://nas");
                assert_self_contained(&page.replace("https://", ""));
                assert!(page.contains(&format!(r#"<html lang="{}">"#, language.tag())));
                for finding in &record.findings {
                    assert!(
                        page.contains(&finding.code),
                        "{} {}",
                        path.display(),
                        finding.code
                    );
                }
                let drawn = pages::charts(&page);
                for (kind, wanted) in drawable(&record) {
                    let of_kind = drawn.iter().filter(|one| one.0 == kind && one.1).count();
                    assert_eq!(of_kind, wanted, "{} {kind}", path.display());
                }
                assert!(page.len() < 400_000, "{}: {}", path.display(), page.len());
                for sign in ["html-", "NaN", "{ $", "inf "] {
                    let at = page.find(sign);
                    assert!(
                        at.is_none(),
                        "{}: {sign}: {:?}",
                        path.display(),
                        at.map(|at| page.get(at.saturating_sub(80)..at + 40))
                    );
                }
            });
        }
    }
}

/// The charts that a record has the figures for, and how many of each kind.
fn drawable(record: &DoctorRecord) -> [(&'static str, usize); 7] {
    let measured = &record.measurements;
    let loads = &measured.comparisons;
    let samples = || loads.iter().flat_map(|one| &one.samples);
    let loaded = loads.iter().filter(|one| !one.samples.is_empty()).count();
    let idle = [&measured.idle_rtt_bare, &measured.idle_rtt_tunnel];
    let has_idle = idle.iter().any(|rtt| rtt.value().is_some());
    let here = samples().any(|one| !one.here.cores.is_empty());
    let far = samples().any(|one| one.far.as_ref().is_some_and(|far| !far.cores.is_empty()));
    [
        (
            "shares",
            usize::from(loads.iter().any(|one| one.ratio.is_some())),
        ),
        ("throughput", loaded),
        ("window", loaded),
        (
            "rtt",
            usize::from(has_idle || samples().any(|one| one.loaded_rtt.is_some())),
        ),
        ("heat", usize::from(here) + usize::from(far)),
        ("sweep", measured.sweeps.len()),
        ("gains", usize::from(!measured.congestion_trials.is_empty())),
    ]
}

#[test]
fn what_comes_from_outside_stays_text() {
    for page in PAGES.iter().filter(|page| page.is_hostile()) {
        let (name, page) = (page.name, (page.make)());
        // As text, what looks like a source of something is none.
        assert_self_contained(&page.replace("&lt;img src=x", ""));
        for sign in [
            "<img",
            "<script",
            "onerror=alert(2)>",
            "\u{202e}",
            "\u{2028}",
            "\nhealthy  curl",
            "\r",
            "\t",
            "\u{200f}",
            "\u{2067}",
            "]]>-->",
        ] {
            assert!(!page.contains(sign), "{name}: {sign}");
        }
        let told = page
            .matches("&lt;script&gt;alert(1)&lt;/script&gt;")
            .count();
        assert!(told > 25, "{name}: {told} times");
        // No more elements open than close.
        for tag in ["svg", "style", "title"] {
            assert_eq!(
                page.matches(&format!("<{tag}")).count(),
                page.matches(&format!("</{tag}>")).count(),
                "{name}: {tag}"
            );
        }
    }
}

#[test]
fn every_chart_is_drawn_that_has_something_to_show() {
    for page in PAGES {
        for language in Language::ALL {
            let found = pages::charts(&within(language, page.make));
            let wrong = page.misses(&found);
            assert!(wrong.is_empty(), "{}: {wrong:?}", page.name);
        }
    }
}

#[test]
fn an_hour_stays_under_a_megabyte() {
    for record in [records::an_hour(), records::a_long_load()] {
        let intervals: usize = record
            .comparisons
            .iter()
            .flat_map(|one| &one.samples)
            .map(|sample| sample.intervals.len())
            .sum();
        assert!(intervals > 35_000, "{intervals}");
        let page = html::test(&record);
        assert!(page.len() < 300_000, "{} bytes", page.len());
    }
}

#[test]
fn a_tune_of_many_experiments_stays_under_a_megabyte() {
    let record = records::a_long_tune();
    let directions = |one: &Experiment| {
        let samples = one.samples.iter();
        let way = |way| samples.clone().filter(move |one| one.load.direction == way);
        [Direction::Upload, Direction::Download].map(|one| way(one).count())
    };
    let experiments = &record.outcome.experiments;
    assert_eq!(experiments.len(), 40);
    assert!(experiments.iter().all(|one| directions(one) == [10, 10]));
    assert!(experiments[0].samples[0].intervals.len() > 100);
    let page = html::tune(&record, "");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("The loads of 28 more experiments are not drawn"));
    assert!(page.contains("136 more groups of runs are not shown"));
}

/// A backquote that is read as such is none that a page has.
#[test]
fn what_is_typed_is_code_wherever_it_stands() {
    for path in records::cases() {
        for language in Language::ALL {
            let page = within(language, || html::doctor(&records::judged(&path), ""));
            let shown: Vec<&str> = page.split('<').filter(|one| one.contains('`')).collect();
            assert!(shown.is_empty(), "{}: {shown:?}", path.display());
        }
    }
    let mut record = records::a_tune();
    record.outcome.ended_early = Some("the rest by `wirespeed tune undo`".to_owned());
    let page = html::tune(&record, "");
    assert!(page.contains("<p>the rest by <code>wirespeed tune undo</code></p>"));
    let mut test: TestRecord = records::recorded("test-healthy");
    test.comparisons[0].remarks = vec!["`iperf3` is not there".to_owned()];
    assert!(html::test(&test).contains("<code>iperf3</code> is not there"));
}

#[test]
fn a_chart_without_data_says_why() {
    let mut record: DoctorRecord = records::recorded("doctor-healthy");
    record.verdict = Verdict::Unmeasured;
    record.machines.truncate(1);
    let measured = &mut record.measurements;
    measured.comparisons.clear();
    measured.congestion_trials.clear();
    measured.idle_rtt_bare = Known::Unknown("no reply came".to_owned());
    measured.idle_rtt_tunnel = Known::Unknown("no reply came".to_owned());
    let page = html::doctor(&record, "");
    let absent = page.matches(r#"data-drawn="false""#).count();
    assert_eq!((absent, page.matches("data-drawn").count()), (8, 8));
    assert_eq!(
        page.matches("<p class=\"absent\"><b>No chart.</b> ")
            .count(),
        8
    );
    assert!(page.contains("No round trip was measured: no reply came"));
    assert!(page.contains("The doctor changes nothing"));
}

#[test]
fn a_tune_says_when_it_was_and_what_an_earlier_one_had_left() {
    let mut record = records::a_tune_of_nothing();
    let page = html::tune(&record, "");
    assert!(!page.contains("<time"), "no moment is known");
    assert!(
        !page.contains("taken in turn"),
        "no load is said to have run"
    );
    assert!(!page.contains("left by an earlier tune"));
    record.outcome.started_at = Some(1_795_247_141.2);
    record.outcome.recovered = vec![records::recovered()];
    let page = html::tune(&record, "");
    assert!(page.contains("<time datetime=\"2026-11-21T07:45Z\">"));
    assert!(page.contains("here: left by an earlier tune: "), "{page}");
    assert!(page.contains("the kernel said no"));
    let french = within(Language::French, || html::tune(&record, ""));
    assert!(french.contains("cette machine\u{202f}: laissé par"));
}

#[test]
fn what_a_tune_kept_is_told_with_its_unit_and_with_where_to_write_it_down() {
    let mut record: TuneRecord = records::recorded("tune-black-hole");
    let page = html::tune(&record, "");
    assert!(page.contains(": 1420 bytes → 1340 bytes"), "{page}");
    let line = "<code>MTU = 1340</code> under [Interface] in /etc/wireguard/";
    assert_eq!(page.matches(line).count(), record.outcome.kept.len());
    record.outcome.kept.clear();
    assert!(!html::tune(&record, "").contains(line));
}

#[test]
fn a_chain_says_when_it_was_measured() {
    let mut record = records::hops();
    record.doctor = None;
    assert!(!html::hops(&record).contains("<time"));
    record.report.measured.started_at = Some(1_795_247_141.2);
    assert!(html::hops(&record).contains("<time datetime=\"2026-11-21T07:45Z\">"));
}

#[test]
fn numbers_beyond_all_measure_break_nothing() {
    let mut record: TestRecord = records::recorded("test-healthy");
    for comparison in &mut record.comparisons {
        comparison.ratio_high = Some(f64::INFINITY);
        comparison.ratio_low = Some(f64::NAN);
        for sample in &mut comparison.samples {
            sample.rate = 1e308;
            sample.ran = -1e308;
            sample.load.warm_up = f64::NAN;
            for core in &mut sample.here.cores {
                core.user = -1e300;
            }
        }
    }
    let page = html::test(&record);
    for attribute in ["\"NaN", "\"inf", "\"-inf", " NaN"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
}

#[test]
fn the_answer_comes_first_and_commands_can_be_copied() {
    let record: DoctorRecord = records::recorded("doctor-black-hole");
    let page = html::doctor(&record, " --far netns:b");
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("id=\"verdict\"") < place("id=\"findings\""));
    assert!(place("id=\"findings\"") < place("id=\"charts\""));
    let command = format!(
        "wirespeed tune {} --far netns:b --only icmp-black-hole</pre>",
        record.interface
    );
    assert!(page.contains(&command));
    // Several commands are several lines, wherever they stand.
    let undo = &record.findings[0].remedies[0].undo;
    assert_eq!(undo.lines().count(), 2);
    assert!(page.contains(&format!("<pre>{undo}</pre>")), "{undo}");
    // What no command can do.
    let socket = html::doctor(&records::case("socket-overflow"), "");
    assert!(socket.contains("No command does this: <code>wirespeed tune</code> does."));
    let french = within(Language::French, || html::doctor(&record, ""));
    assert!(french.contains("<h2>Constats</h2>"), "{}", &french[..2000]);
    let test = html::test(&records::a_test());
    assert!(test.contains("Healthy") && test.contains("Throughput: "));
}
