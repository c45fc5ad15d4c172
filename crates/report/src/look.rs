//! How text is laid out: width, colour, indents that hang.

use anstyle::{AnsiColor, Style};

use crate::room::{cell, clean, commands};
use crate::typed::COMMENT;

/// How the reader wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns; kept between 60 and 120.
    pub width: usize,
    /// With ANSI colours.
    pub colour: bool,
    /// Details after the answer (`-v`).
    pub details: bool,
    /// Lines are drawn with ASCII alone: what shows them may know nothing else.
    pub ascii: bool,
}

/// Narrowest layout.
const NARROWEST: usize = 60;
/// Widest layout: longer lines are hard to read.
const WIDEST: usize = 120;

impl Look {
    /// A look for a terminal of `columns`.
    pub fn new(columns: usize, colour: bool, details: bool) -> Self {
        Self {
            width: columns.clamp(NARROWEST, WIDEST),
            colour,
            details,
            ascii: false,
        }
    }

    /// The same with lines drawn in ASCII.
    #[must_use]
    pub fn in_ascii(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.styled(text, AnsiColor::Green.on_default().bold())
    }

    pub(crate) fn warn(&self, text: &str) -> String {
        self.styled(text, AnsiColor::Yellow.on_default().bold())
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.styled(text, AnsiColor::Red.on_default().bold())
    }

    /// One entry of a list: a name in a column of `width`, and what it is.
    pub fn entry(&self, name: &str, width: usize, text: &str) -> String {
        self.hanging(&format!("  {}  ", self.bold(name)), width + 4, text)
    }

    fn styled(&self, text: &str, style: Style) -> String {
        let text = &clean(text);
        if self.colour && !text.is_empty() {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.clone()
        }
    }

    /// A title in bold, over as many lines as it needs, the further ones indented: only lines of ours begin at the left.
    pub(crate) fn title(&self, text: &str) -> String {
        let mut out = String::new();
        for (index, line) in wrap(&clean(text), self.width - 2).iter().enumerate() {
            out.push_str(if index == 0 { "" } else { "  " });
            out.push_str(&self.bold(line));
            out.push('\n');
        }
        out
    }

    /// Is there room for every line?
    pub fn has_room_for(&self, text: &str) -> bool {
        text.lines().all(|line| columns(line) <= self.width)
    }

    /// A paragraph: wrapped to the width, every line indented.
    pub(crate) fn paragraph(&self, indent: usize, text: &str) -> String {
        self.hanging(&" ".repeat(indent), indent, text)
    }

    /// A paragraph beside its label; both columns as wide as `indent`, or as the label needs.
    pub(crate) fn labelled(&self, label: &str, indent: usize, text: &str) -> String {
        self.hanging(&format!("  {label} "), indent, text)
    }

    /// Commands to be copied whole: each on one line however narrow the terminal is. A comment behind one stands beside it where
    /// there is room, and else below.
    pub(crate) fn commands<T: AsRef<str>>(&self, indent: usize, all: &[T]) -> String {
        let all = commands(all).join("\n");
        self.laid_out(&" ".repeat(indent), indent, &all, unbroken)
    }

    /// The same beside their label.
    pub(crate) fn labelled_commands<T: AsRef<str>>(
        &self,
        label: &str,
        indent: usize,
        all: &[T],
    ) -> String {
        let all = commands(all).join("\n");
        self.laid_out(&format!("  {label} "), indent, &all, unbroken)
    }

    /// A verdict, styled by the one or the other, and what is said of it.
    pub(crate) fn verdict(
        &self,
        word: &str,
        style: fn(&Self, &str) -> String,
        text: &str,
    ) -> String {
        let indent = columns(word) + 2;
        self.hanging(&format!("{}  ", style(self, word)), indent, text)
    }

    /// A paragraph whose first line starts with `lead` (shown as it is) and whose further lines are indented
    /// by `indent`.
    pub fn hanging(&self, lead: &str, indent: usize, text: &str) -> String {
        self.laid_out(lead, indent, &clean(text), wrap)
    }

    fn laid_out(
        &self,
        lead: &str,
        indent: usize,
        text: &str,
        lines: fn(&str, usize) -> Vec<String>,
    ) -> String {
        let lead_columns = columns(lead);
        let mut first = lead.to_owned();
        if lead_columns < indent {
            first.push_str(&" ".repeat(indent - lead_columns));
        }
        let room = self.width.saturating_sub(indent.max(lead_columns)).max(20);
        let mut out = String::new();
        for (index, line) in lines(text, room).into_iter().enumerate() {
            if index == 0 {
                out.push_str(&first);
            } else {
                out.push_str(&" ".repeat(indent));
            }
            out.push_str(&line);
            out.push('\n');
        }
        out
    }
}

/// A plain table, indented by two.
pub fn sheet(look: &Look, header: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    table(look, 2, header, rows, usize::MAX)
}

/// One table; where it is too wide, without the column `least`.
pub(crate) fn table_or_without(
    look: &Look,
    indent: usize,
    mut header: Vec<String>,
    mut rows: Vec<Vec<String>>,
    align_right_from: usize,
    least: usize,
) -> String {
    let whole = table(look, indent, &header, &rows, align_right_from);
    if look.has_room_for(&whole) {
        return whole;
    }
    for row in rows.iter_mut().chain([&mut header]) {
        row.remove(least);
    }
    table(look, indent, &header, &rows, align_right_from)
}

/// One table of figures, indented by two; where it is too wide, with the first cell of each row on a line of its own.
pub(crate) fn table_or_stacked(
    look: &Look,
    header: &[impl AsRef<str>],
    rows: &[Vec<String>],
) -> String {
    let whole = table(look, 2, header, rows, 1);
    if look.has_room_for(&whole) {
        return whole;
    }
    let names = rows.iter().map(|row| row.first().map(String::as_str));
    let figures: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().skip(1).cloned().collect())
        .collect();
    let table = table(look, 4, header.get(1..).unwrap_or_default(), &figures, 0);
    let mut lines = table.lines();
    let mut out = String::new();
    // The first line is the header's.
    for (name, line) in std::iter::once(None).chain(names).zip(&mut lines) {
        if let Some(name) = name {
            out.push_str(&look.paragraph(2, name));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// One table: columns as wide as their widest cell, two spaces apart; columns from `align_right_from` on are
/// right-aligned.
pub(crate) fn table(
    look: &Look,
    indent: usize,
    header: &[impl AsRef<str>],
    rows: &[Vec<String>],
    align_right_from: usize,
) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|text| cell(text)).collect())
        .collect();
    let mut widths: Vec<usize> = header.iter().map(|cell| columns(cell.as_ref())).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = " ".repeat(indent);
        for (index, (cell, width)) in cells.zip(&widths).enumerate() {
            if index > 0 {
                text.push_str("  ");
            }
            let pad = " ".repeat(width.saturating_sub(columns(cell)));
            if index >= align_right_from {
                text.push_str(&pad);
                text.push_str(cell);
            } else {
                text.push_str(cell);
                text.push_str(&pad);
            }
        }
        text.trim_end().to_owned()
    };
    let mut out = String::new();
    out.push_str(&look.dim(&line(&mut header.iter().map(AsRef::as_ref))));
    out.push('\n');
    for row in &rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
        out.push('\n');
    }
    out
}

/// Columns a text takes: characters, escape sequences not counted.
pub(crate) fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut escape = false;
    for character in text.chars() {
        match (escape, character) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (false, _) => count += 1,
            (true, _) => {}
        }
    }
    count
}

/// Breaks at spaces; a word longer than the room stands alone and sticks out.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().flat_map(|one| filled(one, room)).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Commands, a line each, which no shell would take for two. Comments behind them stay such: every line of one begins as one.
fn unbroken(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (command, comment) = match line.split_once(COMMENT) {
            _ if line.starts_with("# ") => ("", line),
            Some((command, comment)) => (command.trim_end(), comment),
            None => (line, ""),
        };
        if !command.is_empty() {
            lines.push(command.to_owned());
        }
        if comment.is_empty() {
            continue;
        }
        let comment = comment.trim_start_matches("# ");
        let one = format!(" # {comment}");
        match lines.last_mut() {
            Some(last) if !command.is_empty() && columns(last) + columns(&one) <= room => {
                last.push_str(&one);
            }
            _ => {
                let more = comment.split(COMMENT);
                let more = more.flat_map(|one| filled(one, room.saturating_sub(2)));
                lines.extend(more.map(|line| format!("# {line}")));
            }
        }
    }
    lines
}

/// As many words to a line as there is room for.
fn filled(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        if !line.is_empty() && columns(&line) + 1 + columns(&word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

/// Units that stay with their number.
const UNITS: [&str; 14] = [
    "%", "ms", "s", "µs", "min", "h", "bytes", "KiB", "MiB", "GiB", "bit/s", "kbit/s", "Mbit/s",
    "Gbit/s",
];

/// Words, a number and its unit being one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&bare) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_keeps_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("a verylongcommandline b", 5),
            ["a", "verylongcommandline", "b"]
        );
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(
            wrap("took 12.5 ms, twice", 9),
            ["took", "12.5 ms,", "twice"]
        );
    }

    #[test]
    fn a_command_is_one_line_and_its_comment_is_none_of_it() {
        let far = "--ssh-option '-i  key' --only mtu";
        assert_eq!(unbroken(far, 10), [far], "as it was, spaces and all");
        assert_eq!(unbroken("do it  # on here", 12), ["do it", "# on here"]);
        assert_eq!(unbroken("do it  # on here", 16), ["do it # on here"]);
        assert_eq!(
            unbroken("do it now  # on here or there\ndo that", 11),
            ["do it now", "# on here", "# or there", "do that"]
        );
        assert_eq!(
            unbroken("do it  # as found  # on here", 13),
            ["do it", "# as found", "# on here"]
        );
        assert_eq!(
            unbroken("# first see that\ndo it", 12),
            ["# first see", "# that", "do it"]
        );
        let look = Look::new(60, false, false);
        let long = format!("echo {}", "word ".repeat(20).trim_end());
        assert_eq!(
            look.labelled_commands("fix", 12, &[&long]),
            format!("  fix       {long}\n")
        );
    }

    #[test]
    fn escapes_take_no_columns() {
        let look = Look::new(80, true, false);
        assert_eq!(columns(&look.bad("five!")), 5);
        assert_eq!(Look::new(80, false, false).bad("five!"), "five!");
    }

    #[test]
    fn width_is_kept_between_60_and_120() {
        assert_eq!(Look::new(10, false, false).width, 60);
        assert_eq!(Look::new(500, false, false).width, 120);
    }

    #[test]
    fn what_comes_from_outside_stays_in_its_line() {
        let look = Look::new(60, false, false);
        let forged = "a\nb\u{1b}[31m";
        for (text, shown) in [
            (look.bold(forged), "a b [31m"),
            (look.title(forged), "a b [31m\n"),
            (look.paragraph(2, forged), "  a b [31m\n"),
            (look.entry(forged, 8, forged), "  a b [31m  a b [31m\n"),
            (look.commands(2, &[forged, "c"]), "  a b [31m\n  c\n"),
            (
                sheet(&look, &[forged], &[vec![forged.to_owned()]]),
                "  a b [31m\n  a b [31m\n",
            ),
        ] {
            assert_eq!(text, shown);
        }
    }
}
