//! Records in files: bounded, and named when they are wrong.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use wirespeed_words::{say, units};

use crate::exit::Exit;
use crate::failure::Failure;

/// Largest record that is read; a careful test with many samples is about a megabyte.
const LARGEST: u64 = 64 << 20;

/// Reads a JSON file that must be `what`; `todo` says how to come by one.
pub(crate) fn read_json<T: DeserializeOwned>(
    path: &Path,
    what: &str,
    todo: &str,
) -> Result<T, Failure> {
    let fail = |why: String| {
        Failure::here(
            Exit::Unmeasured,
            say!("cli-not-read", path = path.display().to_string(), why = why),
            todo,
        )
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    match read {
        Ok(size) if size as u64 > LARGEST => {
            return Err(fail(say!(
                "cli-too-large",
                most = units::count(LARGEST as f64)
            )));
        }
        Ok(_) => {}
        Err(error) => return Err(fail(error.to_string())),
    }
    serde_json::from_str(&text).map_err(|error| {
        let error = error.to_string();
        fail(say!("cli-not-that", what = what, error = error))
    })
}

/// Says before the work begins when its record could not be written afterwards.
pub(crate) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if path.is_dir() {
        return Err(not_written(path, &ErrorKind::IsADirectory.into()));
    }
    let draft = draft_of(path);
    File::create(&draft)
        .and_then(|_| std::fs::remove_file(&draft))
        .map_err(|error| not_written(path, &error))
}

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let draft = draft_of(path);
    let written = File::create(&draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| {
        // The draft may not even exist.
        let _ = std::fs::remove_file(&draft);
        not_written(path, &error)
    })
}

fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".draft-{}", std::process::id()));
    draft.into()
}

fn not_written(path: &Path, why: &std::io::Error) -> Failure {
    Failure::here(
        Exit::Unmeasured,
        say!(
            "cli-not-written",
            path = path.display().to_string(),
            why = why.to_string()
        ),
        say!("cli-not-written-todo"),
    )
}
