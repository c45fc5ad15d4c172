//! A page of the documentation in the terminal: paragraphs, list items and cells of tables flow to the width, commands
//! stay as they are.

use crate::look::{Look, columns, table, wrap};

/// Columns around a table's cells: its indent, and what stands between two.
const INDENT: usize = 2;
const BETWEEN: usize = 2;

/// The Markdown subset of `docs/causes`: headings, paragraphs, lists, tables, links, indented code.
pub fn page(markdown: &str, look: &Look) -> String {
    let mut out = String::new();
    let mut block: Option<Block> = None;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in markdown.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if indent < 4 && text.starts_with('|') {
            flush(&mut block, &mut out, look);
            rows.push(cells(text));
            continue;
        }
        flush_table(&mut rows, &mut out, look);
        let in_list = block.as_ref().is_some_and(|block| block.hang > 0);
        if text.is_empty() {
            flush(&mut block, &mut out, look);
            out.push('\n');
        } else if let Some(heading) = text.strip_prefix('#') {
            flush(&mut block, &mut out, look);
            out.push_str(&look.bold(&plain(heading.trim_start_matches('#').trim())));
            out.push('\n');
        } else if indent >= 4 && !in_list {
            out.push_str(&look.dim(line));
            out.push('\n');
        } else if let Some(marker) = marker(text) {
            flush(&mut block, &mut out, look);
            block = Some(Block {
                lead: format!("{}{}", " ".repeat(indent), &text[..marker]),
                hang: indent + marker,
                text: text[marker..].to_owned(),
            });
        } else if let Some(block) = &mut block {
            block.text.push(' ');
            block.text.push_str(text);
        } else {
            block = Some(Block {
                lead: String::new(),
                hang: 0,
                text: text.to_owned(),
            });
        }
    }
    flush(&mut block, &mut out, look);
    flush_table(&mut rows, &mut out, look);
    out
}

struct Block {
    lead: String,
    hang: usize,
    text: String,
}

fn flush(block: &mut Option<Block>, out: &mut String, look: &Look) {
    if let Some(block) = block.take() {
        out.push_str(&look.hanging(&block.lead, block.hang, &plain(&block.text)));
    }
}

/// Without the marks of bold and code, and links as their text; one to elsewhere keeps its address.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        let link = after.split_once(']').and_then(|(shown, after)| {
            let (to, after) = after.strip_prefix('(')?.split_once(')')?;
            Some((shown, to, after))
        });
        if let Some((shown, to, after)) = link {
            out.push_str(shown);
            if to.contains("://") {
                out.push_str(" (");
                out.push_str(to);
                out.push(')');
            }
            rest = after;
        } else {
            out.push('[');
            rest = after;
        }
    }
    out.push_str(rest);
    out.replace("**", "").replace('`', "")
}

/// The cells of a table's line; `\|` is a bar within one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut letters = line.trim().trim_start_matches('|').chars().peekable();
    while let Some(letter) = letters.next() {
        let last = cells.len() - 1;
        match letter {
            '\\' if letters.next_if_eq(&'|').is_some() => cells[last].push('|'),
            '|' if letters.peek().is_some() => cells.push(String::new()),
            '|' => {}
            letter => cells[last].push(letter),
        }
    }
    cells.iter().map(|cell| plain(cell.trim())).collect()
}

fn flush_table(rows: &mut Vec<Vec<String>>, out: &mut String, look: &Look) {
    let mut rows = std::mem::take(rows);
    let rule = |row: &Vec<String>| {
        row.iter()
            .all(|cell| cell.contains('-') && cell.trim_matches([':', '-']).is_empty())
    };
    rows.retain(|row| !rule(row));
    let Some(most) = rows.iter().map(Vec::len).max() else {
        return;
    };
    let widths = widths(&rows, most, look.width);
    let mut lines = rows.iter().flat_map(|row| broken(row, &widths));
    let Some(header) = lines.next() else {
        return;
    };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let lines: Vec<Vec<String>> = lines.collect();
    out.push_str(&table(look, INDENT, &header, &lines, usize::MAX));
}

/// Each column as wide as its widest cell; where that is too much together, the widest gives way, down to its longest word.
fn widths(rows: &[Vec<String>], most: usize, room: usize) -> Vec<usize> {
    let widest = |of: &dyn Fn(&str) -> usize| -> Vec<usize> {
        let cell = |row: &Vec<String>, at: usize| row.get(at).map_or(0, |cell| of(cell));
        (0..most)
            .map(|at| rows.iter().map(|row| cell(row, at)).max().unwrap_or(0))
            .collect()
    };
    let mut widths = widest(&columns);
    let least = widest(&|cell| cell.split_whitespace().map(columns).max().unwrap_or(0));
    let room = room.saturating_sub(INDENT + BETWEEN * most.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let widest = (0..most)
            .filter(|at| widths[*at] > least[*at])
            .max_by_key(|at| widths[*at]);
        let Some(widest) = widest else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}

/// A row as lines in which every cell has its width.
fn broken(row: &[String], widths: &[usize]) -> Vec<Vec<String>> {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(cell, *width))
        .collect();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..lines)
        .map(|line| {
            cells
                .iter()
                .map(|cell| cell.get(line).cloned().unwrap_or_default())
                .collect()
        })
        .collect()
}

/// Bytes of a list marker (`- `, `1. `), if the text starts with one.
fn marker(text: &str) -> Option<usize> {
    if text.starts_with("- ") {
        return Some(2);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(digits + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_commands_stay() {
        let text = "# code\n\nOne two\nthree.\n\n    ip link show wg0     # as it is\n\n1. first\n   item\n2. second\n";
        let shown = page(text, &Look::new(60, false, false));
        assert_eq!(
            shown,
            "code\n\nOne two three.\n\n    ip link show wg0     # as it is\n\n1. first item\n2. second\n"
        );
    }

    #[test]
    fn tables_are_columns_and_links_their_text() {
        let text = "See [path-loss](path-loss.md), `[Peer]` and [the *list*](https://lists.example/1).\n\n| driver | counts as lost |\n| --- | --- |\n| ixgbe, igb | `rx_missed_errors` |\n| a \\| b | one two three four five six seven eight nine ten eleven twelve |\n\nafter\n";
        let shown = page(text, &Look::new(60, false, false));
        assert_eq!(
            shown,
            "See path-loss, [Peer] and the *list*\n(https://lists.example/1).\n\n  driver      counts as lost\n  ixgbe, igb  rx_missed_errors\n  a | b       one two three four five six seven eight nine\n              ten eleven twelve\n\nafter\n"
        );
    }

    #[test]
    fn a_cell_too_wide_gives_way_to_the_others() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["fault", "kernels", "what happens"]),
            row([
                "stall",
                "5.15.186–200, 6.1.142–163, 6.6.94–126, 6.12.34–73",
                "a peer may stop receiving for good, under load alone",
            ]),
        ];
        let widths = widths(&rows, 3, 60);
        assert_eq!(widths.iter().sum::<usize>(), 60 - 2 - 4);
        assert_eq!(widths[0], 5);
        assert!(widths[1] >= 13 && widths[2] >= 20, "{widths:?}");
    }
}
