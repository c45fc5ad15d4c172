//! Which driver serves a link.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::links::RawLink;
use crate::{Known, files};

/// A virtual link's kind is its driver's name, as ethtool shows it too; a device's driver stands in `/sys`.
pub(crate) fn driver(link: &RawLink) -> Known<String> {
    if let Some(kind) = &link.kind {
        return Known::Value(kind.clone());
    }
    let Some(directory) = directory(link) else {
        return Known::because(NOT_SHOWN);
    };
    match fs::read_link(directory.join("device/driver")) {
        Ok(target) => match target.file_name().and_then(|name| name.to_str()) {
            Some(name) => Known::Value(name.to_owned()),
            None => Known::because("the driver's name in /sys is not text"),
        },
        Err(_) => Known::because("the kernel names no driver for it"),
    }
}

/// Why [`directory`] is none.
pub(crate) const NOT_SHOWN: &str = "/sys does not show this network namespace";

/// What `/sys` shows of a link, if it shows this one.
pub(crate) fn directory(link: &RawLink) -> Option<PathBuf> {
    let directory = PathBuf::from("/sys/class/net").join(&link.name);
    is_same_link(&directory, link).then_some(directory)
}

/// `/sys` shows the network namespace in which it was mounted, which need not be the caller's: only a link of the
/// same index and hardware address is taken for the same one.
fn is_same_link(directory: &std::path::Path, link: &RawLink) -> bool {
    let index = files::line(directory.join("ifindex"));
    let address = files::line(directory.join("address"));
    let expected = link.address.iter().fold(String::new(), |mut text, byte| {
        if !text.is_empty() {
            text.push(':');
        }
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    index.is_ok_and(|index| index == link.index.to_string())
        && address.is_ok_and(|address| address == expected)
}
