//! The schemas of the last release: the last tag says what was published, whatever became of the files since then.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where they are in the repository.
const FOLDER: &str = "docs/schemas";

/// Asks about this repository alone, whatever the environment says of another and of the user.
fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    git.arg("-C").arg(repository).stdin(Stdio::null());
    git
}

/// What git says of a repository, or why it says nothing.
fn said<A: AsRef<OsStr>>(
    repository: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, String> {
    let output = git(repository).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(|error| error.to_string());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().next().unwrap_or("git failed").to_owned())
}

/// Tag of the last release before what is checked out, and its schemas by file name; or why there are none to compare with.
pub(crate) fn last(repository: &Path) -> Result<(String, BTreeMap<String, String>), String> {
    let tag = said(repository, ["describe", "--tags", "--abbrev=0"])?;
    let tag = tag.trim();
    let folder = format!("{tag}:{FOLDER}");
    let files = said(repository, ["ls-tree", "--name-only", "-z", &folder])?;
    let files = files.split_terminator('\0').map(|file| {
        let text = said(repository, ["show", &format!("{folder}/{file}")])?;
        Ok((file.to_owned(), text))
    });
    Ok((tag.to_owned(), files.collect::<Result<_, String>>()?))
}

mod tests {
    use serde_json::json;
    use wirespeed_schemas::broken_since;

    use super::*;
    use crate::skips::{is_there, skip};
    use crate::{files_in, horoscope};

    /// Commits all there is in a repository of the test's own.
    fn commit(repository: &Path, tag: Option<&str>) {
        let mut all = vec![
            vec!["init", "--quiet"],
            vec!["add", "--all"],
            vec!["commit", "--quiet", "--message", "A state"],
        ];
        all.extend(tag.map(|tag| vec!["tag", tag]));
        for arguments in all {
            let settings = [
                "user.name=Test",
                "user.email=test@example.org",
                "init.defaultBranch=main",
                "commit.gpgSign=false",
                "tag.gpgSign=false",
            ];
            let done = git(repository)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .args(settings.iter().flat_map(|setting| ["-c", setting]))
                .args(&arguments)
                .status()
                .expect("git starts");
            assert!(done.success(), "git {arguments:?}");
        }
    }

    #[test]
    fn what_a_release_published_is_known_after_its_files_were_overwritten() {
        const TEST: &str = "what_a_release_published_is_known_after_its_files_were_overwritten";
        if !is_there("git") {
            return skip(TEST, "git is not installed");
        }
        let repository = tempfile::tempdir().expect("a folder");
        let (root, schemas) = (repository.path(), repository.path().join(FOLDER));
        std::fs::create_dir_all(&schemas).expect("folders");
        let publish = |file: &str, field: &str| {
            let schema = horoscope(1, field, &json!("string"));
            std::fs::write(schemas.join(file), schema.text).expect("a schema");
        };
        assert!(last(root).is_err(), "no repository, no release");

        publish("mood.v1.json", "mood");
        commit(root, None);
        let why = last(root).expect_err("a repository without a tag has no release");
        assert!(!why.is_empty());

        publish("mood.v1.json", "temper");
        publish("luck.v1.json", "luck");
        commit(root, Some("v1.0.0"));
        let (tag, released) = last(root).expect("a release");
        assert_eq!(tag, "v1.0.0");
        assert_eq!(released, files_in(&schemas));
        let broken = || {
            let (_, released) = last(root).expect("a release");
            broken_since(&released, &files_in(&schemas)).expect("JSON")
        };
        assert_eq!(broken(), Vec::<String>::new());

        publish("hope.v1.json", "hope");
        assert_eq!(
            broken(),
            Vec::<String>::new(),
            "a further one breaks nobody"
        );
        publish("mood.v1.json", "humour");
        std::fs::remove_file(schemas.join("luck.v1.json")).expect("it is there");
        let told = [
            "luck.v1.json: it is published no more",
            "mood.v1.json: temper went away",
        ];
        assert_eq!(broken(), told);
        commit(root, None);
        assert_eq!(broken(), told, "after a commit, too");
    }
}
