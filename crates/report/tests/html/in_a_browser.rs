//! The reports in a real browser: nothing sticks out, nothing complains, every chart is there.
//!
//! `WIRESPEED_PICTURES=FOLDER` keeps what is seen, and the pages.

use std::time::Duration;

use serde_json::Value;
use wirespeed_report::html;
use wirespeed_words::{Language, within};

use crate::browser::{self, Browser, View};
use crate::records;

type Page = (&'static str, fn() -> String, &'static [&'static str]);

const DOCTOR_CHARTS: &[&str] = &[
    "shares",
    "throughput",
    "window",
    "rtt",
    "heat",
    "drops",
    "sweep",
    "gains",
];
const TEST_CHARTS: &[&str] = &["shares", "throughput", "window", "rtt", "heat", "drops"];
const TUNE_CHARTS: &[&str] = &["gains", "throughput", "window", "heat", "drops"];

const PAGES: [Page; 7] = [
    (
        "doctor",
        || html::doctor(&records::a_sweep(), " --far ssh://root@nas"),
        DOCTOR_CHARTS,
    ),
    (
        "black-hole",
        || html::doctor(&records::case("icmp-black-hole"), " --far ssh://root@nas"),
        DOCTOR_CHARTS,
    ),
    ("test", || html::test(&records::a_test()), TEST_CHARTS),
    ("hour", || html::test(&records::an_hour()), TEST_CHARTS),
    (
        "tune",
        || html::tune(&records::a_tune(), " --far ssh://root@nas"),
        TUNE_CHARTS,
    ),
    (
        "hops",
        || html::hops(&records::hops()),
        &["hops", "throughput"],
    ),
    (
        "hostile",
        || html::doctor(&records::hostile(), " --far ssh://root@nas"),
        DOCTOR_CHARTS,
    ),
];

/// What is asked of every page: sizes, what sticks out, the charts, and what could run.
const PROBE: &str = r"(() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  const name = one => one.tagName + '.' + (one.getAttribute('class') || '') + ' ' + one.textContent.slice(0, 40);
  const out = [...document.body.querySelectorAll('*')]
    .filter(one => !one.closest('svg') && !one.closest('thead') && one.getBoundingClientRect().right > innerWidth + 0.5).map(name);
  const cut = [...document.querySelectorAll('figure svg')].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(one => {
      const box = one.getBoundingClientRect();
      return box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
    }).map(one => svg.querySelector('title').textContent + ': ' + one.textContent);
  });
  const charts = [...document.querySelectorAll('figure')].map(one => {
    const svg = one.querySelector('svg');
    const words = svg ? svg.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent) : [];
    return {kind: one.dataset.chart, drawn: one.dataset.drawn === 'true', size: svg ? svg.getBoundingClientRect().height : 0,
            role: svg && svg.getAttribute('role'), words, text: one.textContent};
  });
  const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
  return {inner: innerWidth, scroll: document.documentElement.scrollWidth, out, cut, charts,
          twice: ids.filter((one, at) => ids.indexOf(one) !== at),
          active: document.querySelectorAll('script,img,iframe,object,embed,link,form,[onerror],[onload],[onclick]').length,
          language: document.documentElement.lang, text: document.body.textContent};
})()";

#[test]
fn the_pages_in_a_real_browser() {
    let program = match browser::find() {
        Ok(program) => program,
        Err(why) => return browser::skip("the_pages_in_a_real_browser", &why),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let pictures = std::env::var_os("WIRESPEED_PICTURES").map(std::path::PathBuf::from);
    let mut browser = Browser::start(&program);
    let mut wrong = Vec::new();
    for (name, make, kinds) in PAGES {
        for language in Language::ALL {
            let file = folder
                .path()
                .join(format!("{name}.{}.html", language.tag()));
            std::fs::write(&file, within(language, make)).expect("a page");
            if let Some(pictures) = &pictures {
                std::fs::copy(&file, pictures.join(file.file_name().unwrap())).unwrap();
            }
            for (width, dark, print) in [
                (390, false, false),
                (1280, false, false),
                (1280, true, false),
                (794, false, true),
            ] {
                let view = View { width, dark, print };
                let seen = browser.open(&file, view);
                if let Some(pictures) = &pictures {
                    let scheme = if dark { "-dark" } else { "" };
                    let kind = format!("{name}.{}.{width}{scheme}.png", language.tag());
                    std::fs::write(pictures.join(kind), browser.picture("html", 20_000)).unwrap();
                }
                let found = browser.probe(PROBE);
                let mut fail = |what: String| {
                    wrong.push(format!("{name} {} {width} {dark}: {what}", language.tag()));
                };
                if !seen.complaints.is_empty() {
                    fail(format!("the console says {:?}", seen.complaints));
                }
                if seen.asked_for.len() != 1 {
                    fail(format!("it loads {:?}", seen.asked_for));
                }
                // Others may load this machine; the first of several views would be slow by chance.
                if seen.opened > Duration::from_secs(1) {
                    let again = browser.open(&file, view).opened;
                    if again > Duration::from_secs(1) {
                        fail(format!("it opens in {:?}, then in {again:?}", seen.opened));
                    }
                }
                for problem in problems(&found, kinds, language) {
                    fail(problem);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn problems(found: &Value, kinds: &[&str], language: Language) -> Vec<String> {
    let mut wrong = Vec::new();
    if found["scroll"].as_f64() > found["inner"].as_f64() {
        wrong.push(format!("{} wide: {}", found["scroll"], found["out"]));
    }
    for list in ["out", "cut", "twice"] {
        if found[list].as_array().is_none_or(|all| !all.is_empty()) {
            wrong.push(format!("{list}: {}", found[list]));
        }
    }
    if found["active"] != 0 {
        wrong.push(format!("{} elements could run or load", found["active"]));
    }
    if found["language"] != language.tag() {
        wrong.push(format!("it says it is {}", found["language"]));
    }
    let charts = found["charts"].as_array().cloned().unwrap_or_default();
    for kind in kinds {
        if !charts.iter().any(|chart| chart["kind"] == *kind) {
            wrong.push(format!("no chart {kind}"));
        }
    }
    for chart in &charts {
        let words = chart["words"].as_array().cloned().unwrap_or_default();
        let told = words
            .iter()
            .all(|one| one.as_str().is_some_and(|one| !one.is_empty()));
        let figures = words.get(1).and_then(Value::as_str).unwrap_or_default();
        if chart["drawn"] == true {
            let large = chart["size"].as_f64().is_some_and(|size| size > 40.0);
            let says = figures.contains(|letter: char| letter.is_ascii_digit());
            if !large || !told || !says || chart["role"] != "img" {
                wrong.push(format!("{} is no chart: {chart}", chart["kind"]));
            }
        } else if chart["text"].as_str().is_none_or(|text| text.len() < 40) {
            wrong.push(format!("no reason: {chart}"));
        }
    }
    let text = found["text"].as_str().unwrap_or_default();
    for sign in ["NaN", "{ $", "html-"] {
        if text.contains(sign) {
            wrong.push(format!("{sign} stands in the text"));
        }
    }
    wrong
}
