//! Records in files: bounded, and named when they are wrong.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde::de::DeserializeOwned;

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
    let shown = path.display();
    let fail = |why: String| {
        Failure::here(
            Exit::Unmeasured,
            format!("{shown} could not be read: {why}"),
            todo,
        )
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    match read {
        Ok(size) if size as u64 > LARGEST => {
            return Err(fail(format!("it is larger than {LARGEST} bytes")));
        }
        Ok(_) => {}
        Err(error) => return Err(fail(error.to_string())),
    }
    serde_json::from_str(&text).map_err(|error| fail(format!("it is not {what} ({error})")))
}

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".draft-{}", std::process::id()));
    let draft = Path::new(&draft);
    let written = File::create(draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| std::fs::rename(draft, path));
    written.map_err(|error| {
        // The draft may not even exist.
        let _ = std::fs::remove_file(draft);
        Failure::here(
            Exit::Unmeasured,
            format!("{} could not be written: {error}", path.display()),
            "choose a file in a directory that exists and may be written",
        )
    })
}
