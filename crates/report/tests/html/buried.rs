//! Records with more in them than anybody reads: pages and screens stay as large as they may be, and say what they leave out.

use wirespeed_doctor::{Finding, Refusal};
use wirespeed_facts::{CountersDelta, Known};
use wirespeed_measure::{Comparison, NotMeasured};
use wirespeed_report::{
    DoctorRecord, HopsRecord, Look, MachineRecord, TestRecord, TuneRecord, html,
};
use wirespeed_words::{Language, within};

use crate::records;

const PAGE: usize = 1_000_000;
const SCREEN: usize = 100_000;

/// A text of 2 MB, of the letter that takes most on a page, in words and in one.
fn endless(blank: &str) -> String {
    format!("&&&&&&&{blank}").repeat(2_000_000 / 8)
}

fn long() -> String {
    "many & more words ".repeat(100)
}

fn comparisons(of: &Comparison) -> Vec<Comparison> {
    let mut one = of.clone();
    records::with_intervals(&mut one);
    one.pairs = one.pairs.iter().cycle().take(80).copied().collect();
    for sample in &mut one.samples {
        for delta in std::iter::once(&mut sample.here).chain(&mut sample.far) {
            cores(delta);
        }
    }
    one.samples.truncate(4);
    one.remarks = vec![long()];
    let with = |streams| Comparison {
        streams,
        ..one.clone()
    };
    (1..=400).map(with).collect()
}

fn cores(delta: &mut CountersDelta) {
    delta.cores = delta.cores.iter().cycle().take(64).copied().collect();
}

fn machine(machine: &mut MachineRecord) {
    let facts = &mut machine.facts;
    facts.host.kernel = endless("");
    facts.host.system = Known::Value(endless(" "));
    facts.cpu.model = Known::Value(endless(" "));
    machine.name = endless("-");
    facts.outer_links = facts.links.iter().map(|one| one.name.clone()).collect();
    facts.outer_links = facts
        .outer_links
        .iter()
        .cycle()
        .take(5000)
        .cloned()
        .collect();
    for tunnel in &mut facts.tunnels {
        let Known::Value(peers) = &mut tunnel.peers else {
            continue;
        };
        for peer in &mut *peers {
            peer.allowed_ips = (0..20_000).map(|one| format!("10.{one}.0.0/16")).collect();
        }
        *peers = peers.iter().cycle().take(20).cloned().collect();
    }
}

fn missing() -> Vec<NotMeasured> {
    let one = |index| NotMeasured {
        what: if index % 2 == 0 {
            long()
        } else {
            format!("what {index}")
        },
        because: if index == 1 { endless(" ") } else { long() },
    };
    (0..4000).map(one).collect()
}

fn findings(of: &[Finding]) -> Vec<Finding> {
    let first = of.iter().find(|one| !one.remedies.is_empty());
    let mut worst = first.expect("a remedy").clone();
    let short = worst.clone();
    worst.consequence_of = None;
    let line = worst.evidence[0].clone();
    worst.evidence = vec![line; 10_000];
    worst.evidence[0].what = endless(" ");
    worst.because = endless(" ");
    worst.host = endless("");
    let refusal = Refusal {
        remedy: long(),
        why: long(),
    };
    worst.refused = vec![refusal; 1000];
    let remedy = &mut worst.remedies[0];
    remedy.commands = vec![format!(
        "wg set wg0 allowed-ips {}",
        "10.0.0.0/8,".repeat(20_000)
    )];
    remedy.undo = format!(
        "wg set wg0 allowed-ips {}  # on here",
        "10.0.0.0/8,".repeat(20_000)
    );
    let mut effect = short.clone();
    effect.consequence_of = Some(worst.code.clone());
    effect.cause_index = Some(0);
    effect.because = long();
    let effects = vec![effect; 1000];
    let roots = vec![short; 9000];
    std::iter::once(worst).chain(roots).chain(effects).collect()
}

fn doctor() -> DoctorRecord {
    let mut record = records::case("icmp-black-hole");
    record.machines.iter_mut().for_each(machine);
    record.findings = findings(&record.findings);
    record.not_checked = missing();
    record.refused = record.findings[0].refused.clone();
    let measured = &mut record.measurements;
    measured.comparisons = comparisons(&measured.comparisons[0]);
    record
}

fn test() -> TestRecord {
    let mut record: TestRecord = records::recorded("test-healthy");
    record.machines.iter_mut().for_each(machine);
    record.comparisons = comparisons(&record.comparisons[0]);
    record.not_measured = missing();
    record.interface = endless("");
    record
}

fn tune() -> TuneRecord {
    let mut record = records::a_long_tune();
    let outcome = &mut record.outcome;
    outcome.diagnosis.findings = findings(&records::case("icmp-black-hole").findings);
    outcome.not_tried = missing();
    outcome.ended_early = Some(endless(" "));
    for one in &mut outcome.experiments {
        for sample in &mut one.samples {
            cores(&mut sample.here);
        }
    }
    record
}

fn hops(doctor: DoctorRecord) -> HopsRecord {
    let mut record = records::hops();
    record.report.measured.not_measured = missing();
    record.report.measured.hops[0].from = endless(" ");
    record.doctor = Some(doctor);
    record
}

fn assert_page(name: &str, page: &str) {
    assert!(page.len() < PAGE, "{name}: {} bytes", page.len());
    for tag in [
        "svg", "style", "title", "table", "tbody", "article", "section", "details", "dl", "ul",
        "figure", "main",
    ] {
        let [opened, closed] = [format!("<{tag}"), format!("</{tag}>")];
        let [opened, closed] = [opened, closed].map(|one| page.matches(&one).count());
        assert_eq!(opened, closed, "{name}: {tag}");
    }
    assert!(page.ends_with("</html>"), "{name}");
}

#[test]
fn a_page_stays_under_a_megabyte_whatever_is_in_it() {
    let (doctor, test, tune) = (doctor(), test(), tune());
    for language in Language::ALL {
        let pages = within(language, || {
            [
                ("doctor", html::doctor(&doctor, "")),
                ("test", html::test(&test)),
                ("tune", html::tune(&tune, "")),
                ("hops", html::hops(&hops(doctor.clone()))),
            ]
        });
        for (name, page) in &pages {
            assert_page(name, page);
        }
        if language == Language::English {
            let [(_, doctor), (_, test), ..] = &pages;
            for page in [doctor, test] {
                assert!(page.contains("384 more comparisons are not drawn: the first"));
                assert!(page.contains("and 340 more"), "rows of the table");
            }
            assert!(doctor.contains("# one command, too long"));
            assert!(doctor.contains("and 9940 more"), "lines of evidence");
        }
    }
}

#[test]
fn a_screen_stays_one_whatever_is_in_it() {
    let doctor = doctor();
    let look = Look::new(80, false, false);
    for (name, text) in [
        ("doctor", wirespeed_report::doctor(&doctor, "", &look)),
        ("test", wirespeed_report::test(&test(), &look)),
        ("tune", wirespeed_report::tune(&tune(), "", &look)),
        ("hops", wirespeed_report::hops(&hops(doctor), &look)),
    ] {
        assert!(text.len() < SCREEN, "{name}: {} bytes", text.len());
        assert!(text.contains("more (-v shows"), "{name}");
    }
}

#[test]
fn a_peer_of_many_prefixes_is_told_with_some_of_them() {
    let mut record = test();
    record.comparisons.truncate(1);
    record.not_measured.clear();
    let text = wirespeed_report::test(&record, &Look::new(120, false, true));
    assert!(text.contains("19\u{a0}984 more"), "{text}");
    assert!(text.len() < SCREEN, "{} bytes", text.len());
}
