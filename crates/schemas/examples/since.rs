//! What in `docs/schemas` breaks those who read as an earlier release printed: `since FOLDER`, with that release's `docs/schemas`.
//! Ends with 0 when nothing does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use wirespeed_schemas::breaks;

fn main() -> ExitCode {
    let Some(earlier) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("since FOLDER: the docs/schemas of an earlier release");
        return ExitCode::from(2);
    };
    match told_of(&earlier) {
        Ok(told) if told.is_empty() => ExitCode::SUCCESS,
        Ok(told) => {
            for line in told {
                println!("{line}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// A line for each break.
fn told_of(earlier: &Path) -> Result<Vec<String>, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let failed = |error: std::io::Error| format!("{}: {error}", earlier.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(earlier).map_err(failed)? {
        files.push(entry.map_err(failed)?.file_name());
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no schema", earlier.display()));
    }
    let mut told = Vec::new();
    for file in files {
        let name = file.display();
        if !here.join(&file).exists() {
            told.push(format!("{name}: it is published no more"));
            continue;
        }
        let (before, now) = (read(&earlier.join(&file))?, read(&here.join(&file))?);
        let lines = breaks(&before, &now).into_iter();
        told.extend(lines.map(|one| format!("{name}: {one}")));
    }
    Ok(told)
}

fn read(path: &Path) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}
