//! The room that lists have on a page.

use maud::{Markup, PreEscaped, Render, html};
use wirespeed_words::say;

/// One after the other until they take so many bytes, and how many are left then.
pub(super) fn of_page<T>(
    bytes: usize,
    items: impl IntoIterator<Item = T>,
    markup: impl Fn(T) -> Markup,
) -> (Markup, usize) {
    let mut items = items.into_iter();
    let mut shown = String::new();
    while shown.len() < bytes
        && let Some(item) = items.next()
    {
        markup(item).render_to(&mut shown);
    }
    (PreEscaped(shown), items.count())
}

/// That a list has more than the page shows.
pub(super) fn more(left: usize) -> Markup {
    html! { @if left > 0 { p.caption { (say!("html-more", count = left)) } } }
}
