//! The lab by itself: `cargo run -p wirespeed-lab --example lab -- up healthy --name x1`, `list`, `status ID`,
//! `exec ID HOST COMMAND…`, `down ID`, `down --all`. The program `wirespeed lab` is the one for people; this one is for
//! tests that need a process to kill.

use std::process::ExitCode;

use wirespeed_lab::{EmulatorCommand, LabError, UpOptions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, LabError> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["up", scenario, options @ ..] => {
            let scenario = wirespeed_lab::find(scenario)?;
            let mut up = UpOptions {
                emulator: EmulatorCommand {
                    arguments: vec!["emulator".to_owned()],
                    ..EmulatorCommand::default()
                },
                ..UpOptions::default()
            };
            for pair in options.chunks(2) {
                match pair {
                    ["--name", id] => up.id = Some(id.parse()?),
                    ["--tunnel", name] => {
                        up.tunnel = Some(name.parse().map_err(LabError::Emulator)?)
                    }
                    other => return usage(&format!("unknown option {}", other.join(" "))),
                }
            }
            let lab = wirespeed_lab::up(&scenario, &up)?;
            println!("{}", lab.id);
            for note in &lab.notes {
                eprintln!("note: {note}");
            }
        }
        ["down", "--all"] => {
            for (id, result) in wirespeed_lab::remove_left_behind() {
                result?;
                println!("{id} (left behind)");
            }
            for lab in wirespeed_lab::list() {
                wirespeed_lab::down(&lab.id)?;
                println!("{}", lab.id);
            }
        }
        ["down", id] => wirespeed_lab::down(&id.parse()?)?,
        ["list"] => {
            for lab in wirespeed_lab::list() {
                println!(
                    "{} {} {:?}{}",
                    lab.id,
                    lab.scenario.name,
                    lab.phase,
                    if lab.left_behind() {
                        " left behind"
                    } else {
                        ""
                    }
                );
            }
        }
        ["status", id] => println!("{:#?}", wirespeed_lab::status(&id.parse()?)?),
        ["exec", id, host, _, ..] => {
            let lab = wirespeed_lab::get(&id.parse()?)?;
            let status = wirespeed_lab::exec(&lab, host, &arguments[3..])?;
            return Ok(if status.success() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        ["emulator", ..] => wirespeed_lab::emulator::run(&arguments[1..])?,
        _ => {
            return usage(
                "up SCENARIO [--name ID] [--tunnel NAME] | down ID|--all | list | status ID | exec ID HOST COMMAND…",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn usage(text: &str) -> Result<ExitCode, LabError> {
    eprintln!("{text}");
    Ok(ExitCode::from(2))
}
