//! `wirespeed package-files`: what a package has beside the programs, made from the definitions of their command lines.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, Resettable};
use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::Shell;
use wirespeed_device::options::Options as Device;
use wirespeed_words::{Language, within};

use crate::Arguments as Program;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::manual::{self, Related};

/// Where each shell looks for completions, below /usr/share.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/vendor-completions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What takes the place of /usr/share; made where it is missing.
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let written = manuals(&arguments.directory).and_then(|()| completions(&arguments.directory));
    match written {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::here(
            Exit::Unmeasured,
            format!(
                "could not write the files of a package to {}: {error}",
                arguments.directory.display()
            ),
            "name a folder that can be written to",
        )),
    }
}

fn manuals(share: &Path) -> io::Result<()> {
    for (language, folder) in [(Language::English, "man"), (Language::French, "man/fr")] {
        let pages = within(language, || {
            let (program, device) = match language {
                Language::English => (Program::command(), Device::command()),
                Language::French => (
                    wirespeed_help::in_language(Program::command()),
                    wirespeed_help::in_language(Device::command()),
                ),
            };
            let mut pages = manual::pages(program, "1", &OF_PROGRAM)?;
            pages.extend(manual::pages(device, "8", &OF_DEVICE)?);
            io::Result::Ok(pages)
        })?;
        for page in pages {
            let folder = share.join(folder).join(format!("man{}", page.section));
            fs::create_dir_all(&folder)?;
            fs::write(
                folder.join(format!("{}.{}", page.name, page.section)),
                page.text,
            )?;
        }
    }
    Ok(())
}

const OF_PROGRAM: Related = Related {
    files: &[
        ("/var/lib/wirespeed/tune", "man-file-tune"),
        ("/run/wirespeed/lab", "man-file-lab"),
    ],
    see_also: &["wirespeed-device(8)", "wg(8)", "wg-quick(8)", "iperf3(1)"],
};

const OF_DEVICE: Related = Related {
    files: &[
        ("/var/run/wireguard/INTERFACE.sock", "man-file-control"),
        ("/run/wirespeed/INTERFACE.stats", "man-file-statistics"),
    ],
    see_also: &["wirespeed(1)", "wg(8)", "wg-quick(8)", "systemd.unit(5)"],
};

fn completions(share: &Path) -> io::Result<()> {
    let codes = wirespeed_doctor::codes();
    let codes = PossibleValuesParser::new(codes.into_iter().map(|(code, _)| code));
    let program = Program::command().mut_subcommand("explain", |explain| {
        explain.mut_arg("code", |code| code.value_parser(codes))
    });
    for definition in [program, Device::command()] {
        let definition = shown(&definition);
        let name = definition.get_name().to_owned();
        for (shell, folder) in SHELLS {
            let folder = share.join(folder);
            fs::create_dir_all(&folder)?;
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut definition.clone(), &name, &mut text);
            if shell == Shell::Fish {
                text.extend(values_in_fish(&definition).into_bytes());
            }
            let file = match shell {
                Shell::Zsh => format!("_{name}"),
                Shell::Fish => format!("{name}.fish"),
                _ => name.clone(),
            };
            fs::write(folder.join(file), text)?;
        }
    }
    Ok(())
}

/// What a command takes without an option before it: clap's completions for fish offer values of options alone.
fn values_in_fish(definition: &Command) -> String {
    let program = definition.get_name();
    let function = program.replace('-', "_");
    let mut lines = String::new();
    for command in definition.get_subcommands() {
        for argument in command.get_positionals() {
            let values = argument.get_possible_values();
            let values: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
            if !values.is_empty() {
                let _ = writeln!(
                    lines,
                    "complete -c {program} -n \"__fish_{function}_using_subcommand {}\" -f -a \"{}\"",
                    command.get_name(),
                    values.join(" ")
                );
            }
        }
    }
    lines
}

/// The definition without what its help hides: clap's completions offer all there is.
fn shown(definition: &Command) -> Command {
    let mut copy = Command::new(definition.get_name().to_owned());
    if let Some(about) = definition.get_about() {
        copy = copy.about(about.clone());
    }
    if let Some(version) = definition.get_version() {
        copy = copy.version(version.to_owned());
    }
    let of_shown = |argument: &Arg| {
        let conflicts = definition.get_arg_conflicts_with(argument);
        if conflicts.iter().any(|other| other.is_hide_set()) {
            argument.clone().conflicts_with(Resettable::Reset)
        } else {
            argument.clone()
        }
    };
    copy.subcommands(
        definition
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
            .map(shown),
    )
    .args(
        definition
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .map(of_shown),
    )
}
