//! How large the pages of long runs are, and how soon Chromium shows them, as a table for bench/RESULTS.md:
//!
//!     cargo run -p wirespeed-report --example opening -- TIMES

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/html/browser.rs"]
mod browser;
#[allow(dead_code)]
#[path = "../tests/html/records.rs"]
mod records;

use std::time::Duration;

use browser::{Browser, View};
use wirespeed_report::html;

/// What a page is of, and the page.
type Page = (&'static str, fn() -> String);

const PAGES: [Page; 4] = [
    ("`test`, two directions, 160 loads of 10 s each", || {
        html::test(&records::an_hour())
    }),
    ("`test`, two directions, loads of an hour", || {
        html::test(&records::a_long_load())
    }),
    ("`doctor --sweep`, a finding with its charts", || {
        html::doctor(&records::a_sweep(), " --far ssh://root@nas")
    }),
    ("`tune`, 40 experiments of 20 loads", || {
        html::tune(&records::a_long_tune(), " --far ssh://root@nas")
    }),
];

/// A telephone, and a screen.
const WIDTHS: [u32; 2] = [390, 1280];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let times = std::env::args()
        .nth(1)
        .map_or(Ok(20), |text| text.parse())?;
    let program = match browser::find() {
        Ok(program) => program,
        Err(why) => {
            println!("Not measured: {why}.");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let mut browser = Browser::start(&program);
    println!("| page | size | width | opened, median | least – most |");
    println!("| --- | --- | --- | --- | --- |");
    for (number, (name, make)) in PAGES.into_iter().enumerate() {
        let page = make();
        let file = folder.path().join(format!("{number}.html"));
        std::fs::write(&file, &page)?;
        for width in WIDTHS {
            let view = View {
                width,
                dark: false,
                print: false,
            };
            browser.open(&file, view);
            let mut took: Vec<Duration> = (0..times)
                .map(|_: usize| browser.open(&file, view).opened)
                .collect();
            took.sort();
            let milliseconds = |index: usize| took[index].as_secs_f64() * 1e3;
            println!(
                "| {name} | {} kB | {width} px | **{:.0} ms** | {:.0} – {:.0} ms |",
                page.len().div_ceil(1000),
                milliseconds(took.len() / 2),
                milliseconds(0),
                milliseconds(took.len() - 1)
            );
        }
    }
    Ok(())
}
