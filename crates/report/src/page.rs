//! A page of the documentation in the terminal: paragraphs and list items flow to the width, commands stay as
//! they are.

use crate::look::Look;

/// The Markdown subset of `docs/causes`: headings, paragraphs, lists, indented code.
pub fn page(markdown: &str, look: &Look) -> String {
    let mut out = String::new();
    let mut block: Option<Block> = None;
    for line in markdown.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let in_list = block.as_ref().is_some_and(|block| block.hang > 0);
        if text.is_empty() {
            flush(&mut block, &mut out, look);
            out.push('\n');
        } else if let Some(heading) = text.strip_prefix('#') {
            flush(&mut block, &mut out, look);
            out.push_str(&look.bold(heading.trim_start_matches('#').trim()));
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
    out
}

struct Block {
    lead: String,
    hang: usize,
    text: String,
}

fn flush(block: &mut Option<Block>, out: &mut String, look: &Look) {
    if let Some(block) = block.take() {
        let text = block.text.replace("**", "").replace('`', "");
        out.push_str(&look.hanging(&block.lead, block.hang, &text));
    }
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
}
