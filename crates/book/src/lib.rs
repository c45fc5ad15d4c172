//! The user guide as a book: `docs/` as HTML, English and French, with what a plain mdBook can't do.
//!
//! - Each page begins with a link to the same page in the other language.
//! - A French page says in its HTML that it is French.
//! - A link to a file outside `docs` becomes the file's name, as the book is read without the repository.

mod links;
mod warnings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};

pub use links::{Link, headings, links, parser};

/// Why there is no book.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// mdBook gave up.
    #[error("the book of {} could not be built: {why:#}", .docs.display())]
    NotBuilt {
        /// The pages.
        docs: PathBuf,
        /// mdBook's reason.
        why: mdbook_driver::errors::Error,
    },
    /// A page of the finished book could not be read or written.
    #[error("the page {} could not be given its language: {why}", .page.display())]
    Page {
        /// The page's file.
        page: PathBuf,
        /// The system's reason.
        why: std::io::Error,
    },
}

/// The pages, in this repository.
pub fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Builds the book into a folder, which is emptied before. Returns what mdBook warned of.
pub fn build(to: &Path) -> Result<Vec<String>, BookError> {
    let not_built = |why| BookError::NotBuilt { docs: docs(), why };
    let (built, warnings) = warnings::collect(|| {
        let mut book = MDBook::load(env!("CARGO_MANIFEST_DIR"))?;
        book.config.build.build_dir = std::path::absolute(to)?;
        let pages: BTreeSet<PathBuf> = chapters(&book).collect();
        book.book.for_each_mut(|item| {
            if let BookItem::Chapter(chapter) = item {
                adapt(chapter, &pages);
            }
        });
        book.build()?;
        Ok(pages)
    });
    for page in built.map_err(not_built)? {
        if Language::of(&page) == Language::French {
            let page = to.join(page).with_extension("html");
            say_french(&page).map_err(|why| BookError::Page { page, why })?;
        }
    }
    Ok(warnings)
}

fn chapters(book: &MDBook) -> impl Iterator<Item = PathBuf> {
    book.iter().filter_map(|item| match item {
        BookItem::Chapter(chapter) => chapter.path.clone(),
        _ => None,
    })
}

fn adapt(chapter: &mut Chapter, pages: &BTreeSet<PathBuf>) {
    let Some(page) = chapter.path.clone() else {
        return;
    };
    let mut text = without_outside_links(&chapter.content, &page);
    if let Some(twin) = twin(&page).filter(|twin| pages.contains(twin)) {
        let name = match Language::of(&page) {
            Language::English => "Français",
            Language::French => "English",
        };
        text = format!("[{name}]({})\n\n{text}", from(&page, &twin));
    }
    chapter.content = text;
}

/// The languages of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    English,
    French,
}

impl Language {
    fn of(page: &Path) -> Self {
        if page.starts_with("fr") || page.starts_with("causes/fr") {
            Self::French
        } else {
            Self::English
        }
    }
}

/// The same page in the other language, relative to `docs`; nothing for what has both languages on one page.
pub fn twin(page: &Path) -> Option<PathBuf> {
    if page.components().count() == 1 {
        let both = ["SUMMARY.md", "README.md"];
        let single = both.iter().any(|both| page.as_os_str() == *both);
        return (!single).then(|| Path::new("fr").join(page));
    }
    let moved = |from: &str, to: &str| {
        let rest = page.strip_prefix(from).ok()?;
        Some(Path::new(to).join(rest))
    };
    moved("causes/en", "causes/fr")
        .or_else(|| moved("causes/fr", "causes/en"))
        .or_else(|| moved("fr", ""))
}

/// The way from one page to another, both relative to `docs`.
fn from(page: &Path, to: &Path) -> String {
    let up = "../".repeat(page.components().count().saturating_sub(1));
    format!("{up}{}", to.display())
}

/// A page's text with the names of files where it has links out of `docs`.
fn without_outside_links(text: &str, page: &Path) -> String {
    let mut out = String::new();
    let mut done = 0;
    for link in links(text) {
        let Some(outside) = link.outside(page) else {
            continue;
        };
        out.push_str(&text[done..link.place.start]);
        out.extend([&link.text, " (`", &outside, "`)"]);
        done = link.place.end;
    }
    out.push_str(&text[done..]);
    out
}

fn say_french(page: &Path) -> std::io::Result<()> {
    let html = std::fs::read_to_string(page)?;
    std::fs::write(
        page,
        html.replacen("<html lang=\"en\"", "<html lang=\"fr\"", 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_twin_in_the_other_language() {
        let twin_of = |page: &str| twin(Path::new(page)).map(|twin| twin.display().to_string());
        assert_eq!(twin_of("tune.md").as_deref(), Some("fr/tune.md"));
        assert_eq!(twin_of("fr/tune.md").as_deref(), Some("tune.md"));
        assert_eq!(
            twin_of("causes/en/path-loss.md").as_deref(),
            Some("causes/fr/path-loss.md")
        );
        assert_eq!(
            twin_of("causes/fr/path-loss.md").as_deref(),
            Some("causes/en/path-loss.md")
        );
        assert_eq!(twin_of("README.md"), None);
    }

    #[test]
    fn a_link_out_of_the_pages_becomes_a_name() {
        let text = "See [the *figures*](../bench/RESULTS.md#x), [tune](tune.md) and [elsewhere](https://example.org).";
        assert_eq!(
            without_outside_links(text, Path::new("device.md")),
            "See the *figures* (`bench/RESULTS.md`), [tune](tune.md) and [elsewhere](https://example.org)."
        );
        let deeper = "[tune](../../tune.md), [all](../../../bench/RESULTS.md)";
        assert_eq!(
            without_outside_links(deeper, Path::new("causes/fr/path-loss.md")),
            "[tune](../../tune.md), all (`bench/RESULTS.md`)"
        );
    }
}
