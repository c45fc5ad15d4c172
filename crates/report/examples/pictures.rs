//! The pictures of docs/pictures, from a recording of `wirespeed doctor --record`:
//!
//!     cargo run -p wirespeed-report --example pictures -- RECORDING FOLDER

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/html/browser.rs"]
mod browser;

use std::path::{Path, PathBuf};

use browser::{Browser, View};
use wirespeed_doctor::{Evidence, judge};
use wirespeed_report::{DoctorRecord, html};
use wirespeed_words::{Language, within};

/// Name, language, width, dark, what of the page, and how much of it at most.
const PICTURES: [(&str, Language, u32, bool, &str, u32); 5] = [
    ("report", Language::English, 1280, false, "html", 1500),
    (
        "report-charts",
        Language::English,
        1280,
        false,
        "#charts",
        3000,
    ),
    (
        "report-charts-dark",
        Language::English,
        1280,
        true,
        "#charts",
        3000,
    ),
    (
        "report-telephone-fr",
        Language::French,
        390,
        false,
        "html",
        1700,
    ),
    (
        "report-telephone-charts-fr",
        Language::French,
        390,
        true,
        "#charts",
        1700,
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(recording), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("which recording, and which folder for the pictures?".into());
    };
    let mut text = std::fs::read_to_string(recording)?;
    let names: Evidence = serde_json::from_str(&text)?;
    // The names that a lab gives say nothing to a reader; the figures stay as they were measured.
    text = text.replace(&names.interface, "wg0");
    if let Some(interface) = &names.far_interface {
        text = text.replace(interface, "wg1");
    }
    let mut evidence: Evidence = serde_json::from_str(&text)?;
    "laptop".clone_into(&mut evidence.here_name);
    "nas".clone_into(&mut evidence.far_name);
    let mut browser = Browser::start(&browser::find()?);
    for (name, language, width, dark, selector, tallest) in PICTURES {
        let page = within(language, || {
            let record = DoctorRecord::new(&evidence, &judge(&evidence));
            html::doctor(&record, " --far ssh://root@nas")
        });
        let file = std::path::absolute(folder.join(format!("{name}.html")))?;
        std::fs::write(&file, page)?;
        picture(&mut browser, &file, (width, dark), (selector, tallest))?;
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

fn picture(
    browser: &mut Browser,
    file: &Path,
    (width, dark): (u32, bool),
    (selector, tallest): (&str, u32),
) -> std::io::Result<()> {
    let view = View {
        width,
        dark,
        print: false,
    };
    let seen = browser.open(file, view);
    println!("{}: opened in {:?}", file.display(), seen.opened);
    std::fs::write(
        file.with_extension("png"),
        browser.picture(selector, tallest),
    )
}
