//! What is read from files and written into them: records that are bounded, and named when they are wrong; answers that replace
//! a file whole, and go into anything else as they come.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;
use wirespeed_words::{say, units};

use crate::exit::Exit;
use crate::failure::Failure;

/// Largest record that is read; a careful test with many samples is about a megabyte.
const LARGEST: u64 = 64 << 20;

/// Links to links that are followed, as by the kernel.
const LINKS: usize = 40;

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
    let checked = Way::to(path).and_then(|way| match way {
        Way::Own(_) => Ok(()),
        // Opening a pipe would wait for its reader, and closing it would be the end for that one.
        Way::Straight => Ok(access(path, Access::WRITE_OK)?),
        Way::Replace { target, before } => draft(&target, before.as_ref())
            .map(drop)
            .or_else(|error| forgiven(&error, before.as_ref()).then_some(()).ok_or(error)),
    });
    checked.map_err(|error| not_written(path, &error))
}

/// Writes a file whole or not at all, and anything else as it comes. A reader that went away is no error.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    match written(path, text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(not_written(path, &error)),
        _ => Ok(()),
    }
}

fn written(path: &Path, text: &[u8]) -> io::Result<()> {
    let (target, before) = match Way::to(path)? {
        Way::Own(mut output) => return output.write_all(text),
        Way::Straight => return write_straight(path, text),
        Way::Replace { target, before } => (target, before),
    };
    let mut draft = match draft(&target, before.as_ref()) {
        Err(error) if forgiven(&error, before.as_ref()) => return write_straight(path, text),
        draft => draft?,
    };
    draft.write_all(text)?;
    draft.as_file().sync_all()?;
    match draft.persist(&target) {
        // What is mounted on its own.
        Err(error) if forgiven(&error.error, before.as_ref()) => write_straight(path, text),
        persisted => Ok(persisted.map(drop)?),
    }
}

/// How a text gets to where a path leads.
enum Way {
    /// An output of this process. Opened anew, a socket is refused, and a file begins again where something stands already.
    Own(File),
    /// A regular file, or nothing yet: a draft takes its place.
    Replace {
        target: PathBuf,
        before: Option<Metadata>,
    },
    /// A pipe or a device, which a file in its place would put an end to; and files that have other names.
    Straight,
}

impl Way {
    fn to(path: &Path) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self::Replace {
                    target: end_of_links(path)?,
                    before: None,
                });
            }
            there => there?,
        };
        let kind = there.file_type();
        if kind.is_dir() {
            return Err(Errno::ISDIR.into());
        }
        if kind.is_block_device() {
            return Err(io::Error::other(say!("cli-is-disk")));
        }
        if let Some(own) = own_output(&there)? {
            return Ok(Self::Own(own));
        }
        if kind.is_socket() {
            return Err(Errno::NXIO.into());
        }
        if !kind.is_file() || there.nlink() > 1 {
            return Ok(Self::Straight);
        }
        // What stands there may be write-protected, though its folder is not.
        access(path, Access::WRITE_OK)?;
        // What a link in /proc leads to may have another name by now, or none.
        Ok(match fs::canonicalize(path) {
            Ok(target) if fs::metadata(&target).is_ok_and(|named| is_same(&named, &there)) => {
                Self::Replace {
                    target,
                    before: Some(there),
                }
            }
            _ => Self::Straight,
        })
    }
}

/// Standard output or standard error, where this is what `there` tells of.
fn own_output(there: &Metadata) -> io::Result<Option<File>> {
    for output in [
        io::stdout().as_fd().try_clone_to_owned(),
        io::stderr().as_fd().try_clone_to_owned(),
    ] {
        let output = File::from(output?);
        if is_same(&output.metadata()?, there) {
            return Ok(Some(output));
        }
    }
    Ok(None)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Where a file would be made that is not there yet: links may lead to it.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..LINKS {
        if end.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        let Ok(next) = fs::read_link(&end) else {
            return Ok(end);
        };
        end = folder_of(&end).join(next);
    }
    Err(Errno::LOOP.into())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file beside the target, with the owner and the mode of the one whose place it takes; it goes when nothing comes of it.
fn draft(target: &Path, before: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let name = target.file_name().ok_or(ErrorKind::NotFound)?;
    let mut name = name.to_owned();
    name.push(".");
    let ending = format!(".draft-{}", std::process::id());
    // Nobody else reads it before it has the mode that it is to have; one that is new has that of any new file.
    let mode = if before.is_some() { 0o600 } else { 0o666 };
    let draft = tempfile::Builder::new()
        .prefix(&name)
        .suffix(&ending)
        // What goes wrong is said of the file that was asked for, not of this one.
        .make_in(folder_of(target), |path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode).open(path)
        })?;
    if let Some(before) = before {
        let (file, now) = (draft.as_file(), draft.as_file().metadata()?);
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            fchown(file, Some(before.uid()), Some(before.gid()))?;
        }
        file.set_permissions(before.permissions())?;
    }
    Ok(draft)
}

/// May a file that is there be written itself, since it may be, and nothing may take its place?
fn forgiven(error: &io::Error, before: Option<&Metadata>) -> bool {
    let kinds = [
        ErrorKind::PermissionDenied,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::ResourceBusy,
    ];
    before.is_some() && kinds.contains(&error.kind())
}

fn write_straight(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(text)
}

fn not_written(path: &Path, why: &io::Error) -> Failure {
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
