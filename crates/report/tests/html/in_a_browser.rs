//! The reports in a real browser: nothing sticks out, nothing complains, every chart is there that has something to show.
//!
//! `WIRESPEED_PICTURES=FOLDER` keeps what is seen, and the pages.

use std::time::Duration;

use serde_json::Value;
use wirespeed_words::{Language, within};

use crate::browser::{self, Browser, View};
use crate::pages::{PAGES, Page};

/// What is asked of every page: sizes, what sticks out, the charts, and what could run.
const PROBE: &str = r"(() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  const name = one => one.tagName + '.' + (one.getAttribute('class') || '') + ' ' + one.textContent.slice(0, 40);
  const out = [...document.body.querySelectorAll('*')].filter(one => {
    const box = one.getBoundingClientRect();
    const spills = one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1;
    return !one.closest('svg') && !one.closest('thead') && (box.left < -0.5 || box.right > innerWidth + 0.5 || spills);
  }).map(name);
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
    const marks = svg ? [...svg.querySelectorAll('path,circle,rect')].filter(mark => {
      const box = mark.getBoundingClientRect();
      return box.width + box.height > 1;
    }).length : 0;
    return {kind: one.dataset.chart, drawn: one.dataset.drawn === 'true', size: svg ? svg.getBoundingClientRect().height : 0, marks,
            role: svg && svg.getAttribute('role'), words, text: one.textContent};
  });
  const runs = one => one.matches('script,img,iframe,object,embed,link,form') || [...one.attributes].some(each => each.name.startsWith('on'));
  const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
  return {inner: innerWidth, scroll: document.documentElement.scrollWidth, out, cut, charts,
          twice: ids.filter((one, at) => ids.indexOf(one) !== at),
          active: [...document.querySelectorAll('*')].filter(runs).length,
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
    for page in PAGES {
        let Page { name, make, .. } = page;
        for language in Language::ALL {
            let file = folder
                .path()
                .join(format!("{name}.{}.html", language.tag()));
            std::fs::write(&file, within(language, *make)).expect("a page");
            if let Some(pictures) = &pictures {
                std::fs::copy(&file, pictures.join(file.file_name().unwrap())).unwrap();
            }
            for &(width, dark, print) in page.views() {
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
                for problem in problems(&found, page, language) {
                    fail(problem);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn problems(found: &Value, page: &Page, language: Language) -> Vec<String> {
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
    let kinds: Vec<(String, bool)> = charts
        .iter()
        .map(|chart| {
            let kind = chart["kind"].as_str().unwrap_or_default();
            (kind.to_owned(), chart["drawn"] == true)
        })
        .collect();
    wrong.extend(page.misses(&kinds));
    for chart in &charts {
        let words = chart["words"].as_array().cloned().unwrap_or_default();
        let told = words
            .iter()
            .all(|one| one.as_str().is_some_and(|one| !one.is_empty()));
        let figures = words.get(1).and_then(Value::as_str).unwrap_or_default();
        if chart["drawn"] == true {
            let large = chart["size"].as_f64().is_some_and(|size| size > 30.0);
            let says = figures.contains(|letter: char| letter.is_ascii_digit());
            let shows = chart["marks"].as_u64().is_some_and(|marks| marks > 0);
            if !large || !told || !says || !shows || chart["role"] != "img" {
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
    if page.is_hostile() && !text.contains("<script>alert(1)</script>") {
        wrong.push("the hostile name is not in the text".to_owned());
    }
    wrong
}
