//! The user guide: it builds, it is whole, its links lead somewhere, and its two languages say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mdbook_markdown::pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use wirespeed_book::{build, docs, headings, links, parser, twin};
use wirespeed_words::{Language, message, within};

/// For those who work on wirespeed itself.
const NOT_IN_THE_BOOK: [&str; 2] = ["outside-suites.md", "release.md"];

/// What is read beside the guide, from its folder.
const BESIDE_THE_GUIDE: [&str; 5] = [
    "../README.md",
    "../CONTRIBUTING.md",
    "../CHANGELOG.md",
    "../bench/README.md",
    "../bench/RESULTS.md",
];

#[test]
fn every_page_is_in_the_summary() {
    let summary: BTreeSet<PathBuf> = links(&page(Path::new("SUMMARY.md")))
        .into_iter()
        .filter(|link| !link.to.is_empty())
        .map(|link| PathBuf::from(link.to))
        .collect();
    let expected: BTreeSet<PathBuf> = pages()
        .into_iter()
        .filter(|page| NOT_IN_THE_BOOK.iter().all(|not| page.as_os_str() != *not))
        .collect();
    assert_eq!(summary, expected);
}

#[test]
fn every_page_is_there_in_both_languages() {
    let all: BTreeSet<PathBuf> = pages().into_iter().collect();
    for page in &all {
        let single = NOT_IN_THE_BOOK.iter().any(|not| page.as_os_str() == *not);
        let there = twin(page).is_none_or(|twin| all.contains(&twin));
        assert!(
            single || there,
            "{} is in one language only",
            page.display()
        );
    }
}

#[test]
fn a_cause_is_listed_by_its_code_and_the_title_the_doctor_gives_it() {
    let mut wrong = Vec::new();
    for link in links(&page(Path::new("SUMMARY.md"))) {
        for (folder, language, colon) in [
            ("causes/en", Language::English, ":"),
            ("causes/fr", Language::French, "\u{202f}:"),
        ] {
            let Ok(file) = Path::new(&link.to).strip_prefix(folder) else {
                continue;
            };
            let code = file.with_extension("").display().to_string();
            let title = within(language, || message(&format!("{code}-title"), []));
            let expected = format!("`{code}`{colon} {title}");
            if link.text != expected {
                wrong.push(expected);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/SUMMARY.md should have:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn twins_have_the_same_outline() {
    let mut different = Vec::new();
    for english in pages() {
        let Some(french) = twin(&english).filter(|_| !in_french(&english)) else {
            continue;
        };
        if !docs().join(&french).exists() {
            continue;
        }
        let (one, other) = (outline(&page(&english)), outline(&page(&french)));
        if one != other {
            let at = one
                .iter()
                .zip(&other)
                .take_while(|(one, other)| one == other)
                .count();
            different.push(format!(
                "{}: part {at} is {:?} in English, {:?} in French",
                english.display(),
                one.get(at),
                other.get(at)
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn french_prose_has_french_apostrophes_and_quotation_marks() {
    let mut wrong = Vec::new();
    for page_in_french in pages().into_iter().filter(|page| in_french(page)) {
        let mut in_code = false;
        for event in parser(&page(&page_in_french)) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Text(text) if !in_code && text.contains(['\'', '"']) => {
                    wrong.push(format!("{}: {text}", page_in_french.display()));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn on_a_plain_checkout_every_link_leads_somewhere() {
    let mut dead = Vec::new();
    let beside = BESIDE_THE_GUIDE.map(PathBuf::from);
    for source in pages().into_iter().chain(beside) {
        // The book has no page for a folder, a checkout has.
        let to_folders = source.starts_with("..");
        for link in links(&page(&source)).iter().filter(|link| link.is_local()) {
            let (target, heading) = link.target(&source);
            let file = docs().join(&target);
            let there = match heading {
                None if to_folders && file.is_dir() => true,
                _ if !file.is_file() => false,
                Some(heading) => std::fs::read_to_string(&file)
                    .is_ok_and(|text| headings(&text).iter().any(|one| one == heading)),
                None => true,
            };
            if !there {
                dead.push(format!("{}: {}", source.display(), link.to));
            }
            let leaves_its_language = in_french(&source)
                && !in_french(&target)
                && !target.starts_with("..")
                && twin(&target).is_some_and(|twin| docs().join(twin).exists());
            if leaves_its_language {
                dead.push(format!("{}: {} is English", source.display(), link.to));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn the_book_builds_without_a_warning_and_every_link_in_it_leads_somewhere() {
    let to = tempfile::tempdir().unwrap();
    let warnings = build(to.path()).unwrap();
    assert_eq!(warnings, [] as [String; 0]);

    let mut files = BTreeMap::new();
    for file in files_under(to.path(), "html") {
        let html = std::fs::read_to_string(to.path().join(&file)).unwrap();
        files.insert(file, html);
    }
    let mut dead = Vec::new();
    for (file, html) in &files {
        let ids_of = |file: &Path| files.get(file).map(|html| values(html, "id"));
        // Shown in the place of any page, so its links are absolute.
        if file == Path::new("404.html") {
            continue;
        }
        for link in values(html, "href").iter().chain(&values(html, "src")) {
            if link.contains("://") {
                // A page may name an address, but must not need one to be shown.
                let shown_only = html.contains(&format!("<a href=\"{link}\""));
                if !shown_only {
                    dead.push(format!("{}: {link} needs a network", file.display()));
                }
                continue;
            }
            let (path, id) = link.split_once('#').unwrap_or((link, ""));
            let target = joined(file, path);
            let there = match ids_of(&target) {
                Some(ids) => id.is_empty() || ids.contains(&id.to_owned()),
                None => to.path().join(&target).is_file(),
            };
            if !there {
                dead.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));

    for (page, language) in [
        ("tune.html", "en"),
        ("fr/tune.html", "fr"),
        ("causes/fr/path-loss.html", "fr"),
    ] {
        let html = &files[Path::new(page)];
        assert!(
            html.contains(&format!("<html lang=\"{language}\"")),
            "{page}"
        );
    }
    let english = &files[Path::new("causes/en/path-loss.html")];
    assert!(english.contains("<a href=\"../../causes/fr/path-loss.html\">Français</a>"));
}

fn page(page: &Path) -> String {
    let path = docs().join(page);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page but the summary, relative to `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = files_under(&docs(), "md");
    pages.retain(|page| page != Path::new("SUMMARY.md"));
    pages
}

fn in_french(page: &Path) -> bool {
    page.starts_with("fr") || page.starts_with("causes/fr")
}

fn files_under(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|one| one == extension) {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// What a page is built of: headings with their level, lists, tables with their rows, blocks of code with their lines.
fn outline(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut code: Option<usize> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => parts.push(format!("heading {level}")),
            Event::Start(Tag::Item) => parts.push("item".to_owned()),
            Event::Start(Tag::TableRow) => parts.push("table row".to_owned()),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                parts.push(format!("code {kind}"));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => code = Some(0),
            Event::Text(text) => {
                if let Some(lines) = &mut code {
                    *lines += text.lines().count();
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                parts.extend(code.take().map(|lines| format!("code of {lines} lines")));
            }
            _ => {}
        }
    }
    parts
}

/// The values of an attribute in an HTML file.
fn values(html: &str, attribute: &str) -> Vec<String> {
    html.split(&format!(" {attribute}=\""))
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(value, _)| value.replace("&amp;", "&"))
        .collect()
}

/// The file a link in another one points to; both relative to the book.
fn joined(file: &Path, link: &str) -> PathBuf {
    if link.is_empty() {
        return file.to_owned();
    }
    let mut target = file.parent().unwrap().to_owned();
    for part in link.split('/') {
        match part {
            ".." => {
                target.pop();
            }
            "." => {}
            part => target.push(part),
        }
    }
    target
}
