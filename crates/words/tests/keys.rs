//! Every key that the program says is there in both languages with the same variables, and every key that is there is said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Keys by their variables.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// Keys that are made at run time: from a unit, from the definition of the command line, or from the id of a row of the doctor's
/// tables, each with a test of its own.
const MADE_AT_RUN_TIME: [&str; 5] = [
    "unit-",
    "help-",
    "man-file-",
    "kernel-fault-",
    "driver-fault-",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|one| one == extension) {
            found.push(path);
        }
    }
}

/// What a language has.
fn written(tag: &str) -> Keys {
    of_each(tag, variables_of)
}

/// What is read from every message of a language, by its key.
fn of_each<T: Default>(tag: &str, read: fn(&Pattern<String>, &mut T)) -> BTreeMap<String, T> {
    entries(tag)
        .into_iter()
        .map(|(key, pattern)| {
            let mut found = T::default();
            read(&pattern, &mut found);
            (key, found)
        })
        .collect()
}

/// Every message of a language, by its key.
fn entries(tag: &str) -> BTreeMap<String, Pattern<String>> {
    let folder = root().join("crates/words/locales").join(tag);
    let mut paths = Vec::new();
    files(&folder, "ftl", &mut paths);
    let mut found = BTreeMap::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let resource = fluent_syntax::parser::parse(text)
            .unwrap_or_else(|(_, errors)| panic!("{}: {errors:?}", path.display()));
        for entry in resource.body {
            let Entry::Message(message) = entry else {
                assert!(
                    !matches!(entry, Entry::Junk { .. }),
                    "{}: {entry:?}",
                    path.display()
                );
                continue;
            };
            let key = message.id.name;
            let twice = found.insert(key.clone(), message.value.unwrap());
            assert!(twice.is_none(), "{}: {key} is there twice", path.display());
        }
    }
    found
}

fn variables_of(pattern: &Pattern<String>, found: &mut BTreeSet<String>) {
    for element in &pattern.elements {
        if let PatternElement::Placeable { expression } = element {
            variables_in(expression, found);
        }
    }
}

fn variables_in(expression: &Expression<String>, found: &mut BTreeSet<String>) {
    match expression {
        Expression::Inline(inline) => variables_inline(inline, found),
        Expression::Select { selector, variants } => {
            variables_inline(selector, found);
            for variant in variants {
                variables_of(&variant.value, found);
            }
        }
    }
}

fn variables_inline(inline: &InlineExpression<String>, found: &mut BTreeSet<String>) {
    match inline {
        InlineExpression::VariableReference { id } => {
            found.insert(id.name.clone());
        }
        InlineExpression::FunctionReference { arguments, .. } => {
            for argument in &arguments.positional {
                variables_inline(argument, found);
            }
        }
        InlineExpression::Placeable { expression } => variables_in(expression, found),
        InlineExpression::StringLiteral { .. } | InlineExpression::NumberLiteral { .. } => {}
        other => panic!("{other:?}: messages stand for themselves"),
    }
}

/// What the program says: each `say!("key", name = …)` in the sources, with the place of the first.
fn said() -> BTreeMap<String, (BTreeSet<String>, String)> {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    let mut found = BTreeMap::new();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        if !text.contains("say!") {
            continue;
        }
        let tokens: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        calls(tokens, &path.display().to_string(), &mut found);
    }
    found
}

fn calls(
    tokens: TokenStream,
    place: &str,
    found: &mut BTreeMap<String, (BTreeSet<String>, String)>,
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        calls(group.stream(), place, found);
        let is = |back: usize, text: &str| {
            index
                .checked_sub(back)
                .is_some_and(|at| tokens[at].to_string() == text)
        };
        if group.delimiter() == Delimiter::None || !is(1, "!") || !is(2, "say") {
            continue;
        }
        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
        let Some(TokenTree::Literal(key)) = inside.first() else {
            continue;
        };
        let key = key.to_string().trim_matches('"').to_owned();
        let names: BTreeSet<String> = inside
            .windows(3)
            .filter(|three| three[0].to_string() == "," && three[2].to_string() == "=")
            .map(|three| three[1].to_string())
            .collect();
        let here = format!("{place}:{}", group.span_open().start().line);
        if let Some((before, there)) = found.insert(key.clone(), (names.clone(), here.clone())) {
            assert_eq!(
                before, names,
                "{key} is said with other variables at {there} than at {here}"
            );
        }
    }
}

#[test]
fn both_languages_have_the_same_keys_with_the_same_variables() {
    let (english, french) = (written("en"), written("fr"));
    let made = |key: &&String| !key.starts_with("help-");
    let missing: Vec<&String> = english
        .keys()
        .filter(|key| !french.contains_key(*key))
        .collect();
    let beside: Vec<&String> = french
        .keys()
        .filter(made)
        .filter(|key| !english.contains_key(*key))
        .collect();
    assert!(
        missing.is_empty() && beside.is_empty(),
        "missing in French: {missing:?}; only there: {beside:?}"
    );
    for (key, variables) in &english {
        // A plural may say "no packets" without the number; what it says at all must be known.
        assert_eq!(Some(variables), french.get(key), "{key}");
    }
}

#[test]
fn every_key_that_is_said_is_there_and_every_one_there_is_said() {
    let (english, said) = (written("en"), said());
    let missing: Vec<String> = said
        .iter()
        .filter(|(key, _)| !english.contains_key(*key))
        .map(|(key, (_, place))| format!("{key} ({place})"))
        .collect();
    assert!(missing.is_empty(), "said, and not there: {missing:#?}");
    let unused: Vec<&String> = english
        .keys()
        .filter(|key| {
            !MADE_AT_RUN_TIME
                .iter()
                .any(|prefix| key.starts_with(prefix))
        })
        .filter(|key| !said.contains_key(*key))
        .collect();
    assert!(unused.is_empty(), "there, and never said: {unused:#?}");
    for (key, (variables, place)) in &said {
        assert_eq!(english.get(key), Some(variables), "{key} at {place}");
    }
}

/// The program shows what to do behind the last semicolon of an error: where only one language has one, the other loses half of it.
#[test]
fn errors_end_with_what_to_do_in_both_languages_or_in_none() {
    let (english, french) = (texts("en"), texts("fr"));
    for (key, text) in english {
        let error = ["measure-", "reach-", "lab-error-", "tune-error-"]
            .iter()
            .any(|prefix| key.starts_with(prefix));
        assert!(
            !error || text.contains("; ") == french[&key].contains("; "),
            "{key}: {text} / {}",
            french[&key]
        );
    }
}

/// What a language says, with every variant and without what is filled in.
fn texts(tag: &str) -> BTreeMap<String, String> {
    of_each(tag, text_of)
}

fn text_of(pattern: &Pattern<String>, text: &mut String) {
    for element in &pattern.elements {
        match element {
            PatternElement::TextElement { value }
            | PatternElement::Placeable {
                expression: Expression::Inline(InlineExpression::StringLiteral { value }),
            } => text.push_str(value),
            PatternElement::Placeable {
                expression: Expression::Select { variants, .. },
            } => {
                for variant in variants {
                    text_of(&variant.value, text);
                }
            }
            // Something, so that what stands on either side stays apart.
            PatternElement::Placeable { .. } => text.push('…'),
        }
    }
}

/// Outside of what is to be typed, French has its own apostrophe and quotation marks.
#[test]
fn french_has_french_apostrophes_and_quotation_marks() {
    let wrong: Vec<String> = texts("fr")
        .into_iter()
        .filter(|(_, text)| {
            // Every other part stands between backticks.
            let prose: String = text.split('`').step_by(2).collect();
            prose.contains(['\'', '"'])
        })
        .map(|(key, text)| format!("{key}: {text}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
