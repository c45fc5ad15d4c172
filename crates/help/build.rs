//! Makes a table of the French texts, so that a program that shows no other needs no Fluent with it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};

fn main() {
    let file = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../words/locales/fr/help.ftl");
    println!("cargo::rerun-if-changed={}", file.display());
    let text = fs::read_to_string(&file).expect("the French texts");
    let resource = fluent_syntax::parser::parse(text).expect("Fluent");
    let mut texts: Vec<(String, String)> = resource
        .body
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Message(message) => {
                let text = plain(&message.value.expect("a text"));
                Some((message.id.name, text))
            }
            _ => None,
        })
        .collect();
    texts.sort();
    let mut table = String::from("pub(crate) const FRENCH: &[(&str, &str)] = &[\n");
    for (key, text) in texts {
        let _ = writeln!(table, "    ({key:?}, {text:?}),");
    }
    table.push_str("];\n");
    fs::write(Path::new(&variable("OUT_DIR")).join("texts.rs"), table).expect("the table");
}

/// A text with `{name}` where a value goes: nothing else is in a text of the help.
fn plain(pattern: &Pattern<String>) -> String {
    let mut out = String::new();
    for element in &pattern.elements {
        match element {
            PatternElement::TextElement { value } => out.push_str(value),
            PatternElement::Placeable {
                expression: Expression::Inline(InlineExpression::VariableReference { id }),
            } => {
                let _ = write!(out, "{{{}}}", id.name);
            }
            PatternElement::Placeable { expression } => panic!("in the help: {expression:?}"),
        }
    }
    out
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo says where")
}
