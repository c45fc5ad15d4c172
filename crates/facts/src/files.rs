//! Small files of `/proc` and `/sys`, read whole but bounded.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of one file (`/proc/cpuinfo` of 500 cores takes about 1 MB).
const SIZE_LIMIT: u64 = 8 << 20;

/// The whole text of a file; bytes that are not UTF-8 become replacement characters.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SIZE_LIMIT).read_to_end(&mut bytes)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// As [`text`], without the line end; the error names the file.
pub(crate) fn line(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    match text(path) {
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(error) => Err(format!("could not read {}: {error}", path.display())),
    }
}
