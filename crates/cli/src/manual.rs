//! Manual pages, made from the definition of a command line: one for each command, in the language of the moment.
//!
//! `clap_mangen` makes the sections. Their headings are ours, as its are English, and what follows the help keeps its lines: these are
//! examples to type.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use wirespeed_words::{message, say};

/// What a page tells that the definition doesn't know.
pub(crate) struct Related {
    /// Paths, each with the key of what is there. Told by the first page only.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Pages of others.
    pub(crate) see_also: &'static [&'static str],
}

pub(crate) struct Page {
    /// `wirespeed-tune-undo`
    pub(crate) name: String,
    /// `1`
    pub(crate) section: &'static str,
    /// Roff.
    pub(crate) text: String,
}

/// The pages of a program and of all its commands but the hidden ones.
pub(crate) fn pages(
    program: Command,
    section: &'static str,
    related: &Related,
) -> io::Result<Vec<Page>> {
    let mut program = without_help_command(program);
    program.build();
    let mut pages = Vec::new();
    collect(&program, section, related, &[], &mut pages)?;
    Ok(pages)
}

/// `help` needs no page of its own.
fn without_help_command(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    let command = command.mut_subcommands(without_help_command);
    if command.find_subcommand("help").is_some() {
        command.mut_subcommand("help", |help| help.hide(true))
    } else {
        command
    }
}

/// The page of a command, whose `above` have pages, too, and those of its own commands.
fn collect(
    command: &Command,
    section: &'static str,
    related: &Related,
    above: &[String],
    pages: &mut Vec<Page>,
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let text = page(command, section, related, above)?;
    pages.push(Page {
        name: name.to_owned(),
        section,
        text,
    });
    let mut above = above.to_vec();
    above.push(format!("{name}({section})"));
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        collect(inner, section, related, &above, pages)?;
    }
    Ok(())
}

fn page(
    command: &Command,
    section: &'static str,
    related: &Related,
    above: &[String],
) -> io::Result<String> {
    let man = Man::new(command.clone()).section(section);
    let mut text = title(command, section);
    text += &renamed(|out| man.render_name_section(out), &say!("man-name"))?;
    text += &renamed(
        |out| man.render_synopsis_section(out),
        &say!("man-synopsis"),
    )?;
    text += &renamed(
        |out| man.render_description_section(out),
        &say!("man-description"),
    )?;
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    text += body(&String::from_utf8_lossy(&options));
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        text += &renamed(
            |out| man.render_subcommands_section(out),
            &say!("man-commands"),
        )?;
    }
    if let Some(after) = command.get_after_help() {
        text += &after_help(&after.to_string());
    }
    if above.is_empty() {
        text += &files(related.files);
    }
    text += &see_also(related.see_also, above);
    Ok(text)
}

/// The apostrophe's definition and the title, with an empty date: the same program always makes the same page. No word is
/// broken, for most long ones are to be typed.
fn title(command: &Command, section: &str) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let preamble = Roff::new().render();
    let version = env!("CARGO_PKG_VERSION");
    format!("{preamble}.TH {name} {section} \"\" \"wirespeed {version}\" wirespeed\n.nh\n")
}

/// What `clap_mangen` renders, under another heading.
fn renamed(render: impl Fn(&mut Vec<u8>) -> io::Result<()>, heading: &str) -> io::Result<String> {
    let mut out = Vec::new();
    render(&mut out)?;
    let out = String::from_utf8_lossy(&out);
    let rest = body(&out).split_once('\n').map_or("", |(_, rest)| rest);
    Ok(section_of(heading) + rest)
}

/// A section from its heading on: each begins with the definition of the apostrophe, which the page has already.
fn body(rendered: &str) -> &str {
    rendered.find(".SH").map_or("", |start| &rendered[start..])
}

fn section_of(heading: &str) -> String {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    body(&roff.render()).to_owned()
}

/// What follows the help: paragraphs, each with its heading on the first line and lines to be left as they are.
fn after_help(text: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split("\n\n") {
        let Some((heading, lines)) = paragraph.split_once('\n') else {
            continue;
        };
        let heading = heading.trim_end_matches([':', ' ', '\u{a0}', '\u{202f}']);
        out += &section_of(&heading.to_uppercase());
        let mut roff = Roff::new();
        roff.control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
        out += without_preamble(&roff.render());
    }
    out
}

fn files(files: &[(&str, &str)]) -> String {
    let mut roff = Roff::new();
    for (path, key) in files {
        roff.control("TP", []);
        roff.text([bold(*path)]);
        roff.text([roman(message(key, []))]);
    }
    section_of(&say!("man-files")) + without_preamble(&roff.render())
}

fn see_also(others: &[&str], above: &[String]) -> String {
    let own = above.iter().rev().map(String::as_str);
    let all: Vec<&str> = own.chain(others.iter().copied()).collect();
    let mut roff = Roff::new();
    roff.text([roman(all.join(", "))]);
    section_of(&say!("man-see-also")) + without_preamble(&roff.render())
}

/// roff's own first lines define the apostrophe; a page does so once.
fn without_preamble(rendered: &str) -> &str {
    let lines = rendered.split_inclusive('\n');
    let preamble: usize = lines
        .take_while(|line| line.starts_with(".ie") || line.starts_with(".el"))
        .map(str::len)
        .sum();
    &rendered[preamble..]
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Subcommand};
    use wirespeed_words::{Language, within};

    use super::*;

    fn program() -> Command {
        #[derive(Subcommand)]
        enum Inner {
            /// Rows the boat.
            Row {
                /// How often, don't overdo it.
                #[arg(long, value_name = "TIMES", default_value_t = 3)]
                times: u8,
            },
            #[command(hide = true)]
            Sink,
        }
        Inner::augment_subcommands(Command::new("boat").about("A boat").version("1"))
            .after_help("Examples:\n  boat row --times 2    # 'gently'\n\nExit codes:\n  0 afloat,\n  1 not")
            .arg(Arg::new("stream").help("Which one."))
    }

    fn made(language: Language) -> Vec<Page> {
        let related = Related {
            files: &[("/run/boat", "man-file-lab")],
            see_also: &["oar(7)"],
        };
        within(language, || pages(program(), "1", &related)).expect("writing to memory")
    }

    #[test]
    fn there_is_a_page_for_each_command_but_the_hidden_ones() {
        let names: Vec<String> = made(Language::English)
            .into_iter()
            .map(|page| page.name)
            .collect();
        assert_eq!(names, ["boat", "boat-row"]);
    }

    #[test]
    fn examples_keep_their_lines_and_sections_are_in_their_order() {
        let pages = made(Language::English);
        let headings: Vec<&str> = pages[0]
            .text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        assert_eq!(
            headings,
            [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "OPTIONS",
                "COMMANDS",
                "EXAMPLES",
                "\"EXIT CODES\"",
                "FILES",
                "\"SEE ALSO\""
            ]
        );
        assert!(
            pages[0]
                .text
                .contains(".nf\nboat row \\-\\-times 2    # \\*(Aqgently\\*(Aq\n.fi\n"),
            "{}",
            pages[0].text
        );
        assert_eq!(pages[0].text.matches(".ie ").count(), 1);
        assert!(pages[1].text.contains("boat(1), oar(7)"));
    }

    #[test]
    fn headings_are_in_the_language_of_the_page() {
        let pages = made(Language::French);
        for heading in ["NOM", "\"VOIR AUSSI\"", "FICHIERS"] {
            assert!(
                pages[0].text.contains(&format!(".SH {heading}\n")),
                "{}",
                pages[0].text
            );
        }
    }
}
