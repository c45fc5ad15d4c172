//! `--html FILE`: the report for a browser, written whole or not at all, and where else than into a new file it may be led.

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use skips::{is_there, skip};

#[path = "support/skips.rs"]
mod skips;

const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../doctor/tests/cases/socket-overflow.json"
);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirespeed"));
    command
        .args(["--lang", "en", "doctor", "--from", RECORDED])
        .args(arguments);
    command
}

fn doctor(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// The report led to this path, with nothing on standard output.
fn led_to(path: &Path) -> Output {
    command(&["--quiet", "--html"])
        .arg(path)
        .output()
        .expect("the program starts")
}

#[track_caller]
fn assert_page(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string())
        .map(|name| name.expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_report_is_written_also_when_something_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, "the one before").expect("a file");
    let shown = file.display().to_string();
    let output = doctor(&["--html", &shown, "--json"]);
    assert_eq!(code(&output), Some(1), "{output:?}");
    wirespeed_schemas::read(&output.stdout).expect("one JSON object");
    // The JSON is as it is without it.
    assert_eq!(output.stdout, doctor(&["--json"]).stdout);
    let page = fs::read_to_string(&file).expect("a report");
    assert_page(&page);
    assert!(page.contains("socket-overflow"));
    // Nothing is left beside it.
    assert_eq!(names_in(folder.path()), ["report.html"]);
}

#[test]
fn a_file_that_is_there_keeps_its_mode_and_a_new_one_has_that_of_any() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let any = folder.path().join("any");
    let mode = |path: &Path| fs::metadata(path).expect("a file").mode() & 0o7777;
    File::create(&any).expect("a file");
    assert_eq!(code(&led_to(&path)), Some(1));
    assert_eq!(mode(&path), mode(&any));
    for kept in [0o600, 0o640, 0o606] {
        fs::write(&path, "the one before").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(kept)).expect("its mode");
        assert_eq!(code(&led_to(&path)), Some(1));
        assert_eq!(mode(&path), kept);
        assert_page(&fs::read_to_string(&path).expect("a report"));
    }
    assert_eq!(names_in(folder.path()), ["any", "report.html"]);
}

#[test]
fn a_file_that_is_there_keeps_its_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    fs::write(&path, "the one before").expect("a file");
    if chown(&path, Some(65534), Some(65534)).is_err() {
        return skip(
            "a_file_that_is_there_keeps_its_owner",
            "only root gives a file away",
        );
    }
    assert_eq!(code(&led_to(&path)), Some(1));
    let now = fs::metadata(&path).expect("a file");
    assert_eq!((now.uid(), now.gid()), (65534, 65534));
    assert_page(&fs::read_to_string(&path).expect("a report"));
}

#[test]
fn every_name_of_a_file_has_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let other = folder.path().join("other.html");
    fs::write(&path, "the one before, ".repeat(100_000)).expect("a file");
    fs::hard_link(&path, &other).expect("another name");
    assert_eq!(code(&led_to(&path)), Some(1));
    assert_page(&fs::read_to_string(&other).expect("a report"));
    assert_eq!(names_in(folder.path()), ["other.html", "report.html"]);
}

#[test]
fn a_link_leads_on_to_a_file_that_is_there_and_to_one_that_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    fs::create_dir(&site).expect("a folder");
    let link = folder.path().join("link");
    symlink("further", &link).expect("a link");
    symlink("site/report.html", folder.path().join("further")).expect("a link");
    for round in ["new", "there"] {
        assert_eq!(code(&led_to(&link)), Some(1), "{round}");
        assert_eq!(
            fs::read_link(&link).expect("still a link"),
            Path::new("further")
        );
        assert_page(&fs::read_to_string(site.join("report.html")).expect("a report"));
        assert_eq!(names_in(&site), ["report.html"]);
        assert_eq!(names_in(folder.path()), ["further", "link", "site"]);
    }
    let round = folder.path().join("round");
    symlink("round", &round).expect("a link");
    assert_eq!(code(&led_to(&round)), Some(3));
}

#[test]
fn a_pipe_stays_one_and_its_reader_gets_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).expect("a pipe");
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).expect("the pipe is read")
    });
    let output = led_to(&path);
    let kind = fs::symlink_metadata(&path).expect("the pipe").file_type();
    assert!(kind.is_fifo(), "{kind:?}");
    assert_eq!(code(&output), Some(1), "{output:?}");
    assert_page(&reader.join().expect("the reader ends"));
    assert_eq!(names_in(folder.path()), ["pipe"]);
}

#[test]
fn a_device_stays_one_and_a_disk_is_refused() {
    let test = "a_device_stays_one_and_a_disk_is_refused";
    let folder = tempfile::tempdir().expect("a folder");
    let node = |name: &str, kind, major, minor| {
        let path = folder.path().join(name);
        mknodat(CWD, &path, kind, Mode::from(0o600), makedev(major, minor)).map(|()| path)
    };
    // That of /dev/null, and one that no disk has.
    let nodes = (
        node("null", FileType::CharacterDevice, 1, 3),
        node("disk", FileType::BlockDevice, 7, 1_000_000),
    );
    let (Ok(null), Ok(disk)) = nodes else {
        return skip(test, "only root makes devices");
    };
    if File::open(&null).is_err() {
        return skip(test, "devices do not work where temporary files are");
    }
    let output = led_to(&null);
    let kind = fs::symlink_metadata(&null).expect("the device").file_type();
    assert!(kind.is_char_device(), "{kind:?}");
    assert_eq!(code(&output), Some(1), "{output:?}");
    let refused = led_to(&disk);
    assert_eq!(code(&refused), Some(3), "{refused:?}");
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("it is a disk"), "{complaint}");
    assert_eq!(names_in(folder.path()), ["disk", "null"]);
}

/// As `/dev/stdout` is: a link to what this process has open.
#[test]
fn standard_output_has_the_page_behind_what_else_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stdout");
    symlink("/proc/self/fd/1", &path).expect("a link");
    let output = led_to(&path);
    assert_eq!(code(&output), Some(1), "{output:?}");
    assert_page(&String::from_utf8_lossy(&output.stdout));

    let mut file = tempfile::tempfile_in(folder.path()).expect("a file");
    writeln!(file, "before").expect("it is written");
    let status = command(&["--html"])
        .arg(&path)
        .stdout(file.try_clone().expect("the same file"))
        .status()
        .expect("the program starts");
    assert_eq!(status.code(), Some(1));
    let mut all = String::new();
    file.rewind().expect("its begin");
    file.read_to_string(&mut all).expect("text");
    let answer = all.strip_prefix("before\n").expect("what was there");
    let at = answer.find("<!DOCTYPE html>").expect("the page");
    assert!(at > 0, "the answer comes first");
    assert_page(&answer[at..]);
    assert_eq!(names_in(folder.path()), ["stdout"]);
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stdout");
    symlink("/proc/self/fd/1", &path).expect("a link");
    let mut child = command(&["--quiet", "--html"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), Some(1), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// A shell of its own mounts: what it mounts goes with it.
fn private(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
    command
}

fn mounts_privately() -> bool {
    let able = || private("mount -t tmpfs tmpfs /mnt").output();
    is_there("unshare") && able().is_ok_and(|output| output.status.success())
}

#[test]
fn what_could_not_be_written_after_the_answer_is_no_second_object_and_leaves_no_draft() {
    if !mounts_privately() {
        return skip(
            "what_could_not_be_written_after_the_answer_is_no_second_object_and_leaves_no_draft",
            "a mount namespace takes root",
        );
    }
    // A page does not fit into a file system of this size.
    let output = private(
        "mount -t tmpfs -o size=8k tmpfs /mnt && echo the one before > /mnt/report.html && \
         \"$0\" --lang en doctor --from \"$1\" --json --html /mnt/report.html; code=$?; \
         ls -A /mnt >&2; cat /mnt/report.html >&2; exit $code",
    )
    .arg(env!("CARGO_BIN_EXE_wirespeed"))
    .arg(RECORDED)
    .output()
    .expect("unshare starts");
    assert_eq!(code(&output), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    let (complaint, left) = told.split_once('\n').expect("a sentence");
    assert!(complaint.contains("/mnt/report.html"), "{complaint}");
    assert_eq!(left, "report.html\nthe one before\n");
    let answer = wirespeed_schemas::read(&output.stdout).expect("one JSON object");
    assert_eq!(answer["findings"][0]["code"], "socket-overflow");
}

#[test]
fn a_file_in_whose_place_nothing_may_come_is_written_itself() {
    if !mounts_privately() {
        return skip(
            "a_file_in_whose_place_nothing_may_come_is_written_itself",
            "a mount namespace takes root",
        );
    }
    for bound in ["", " && mount -o remount,bind,ro /mnt"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        fs::write(&path, "the one before").expect("a file");
        let script = format!(
            "mount -t tmpfs tmpfs /mnt && touch /mnt/report.html && \
             mount --bind \"$2\" /mnt/report.html{bound} && \
             exec \"$0\" doctor --from \"$1\" --quiet --html /mnt/report.html"
        );
        let output = private(&script)
            .arg(env!("CARGO_BIN_EXE_wirespeed"))
            .arg(RECORDED)
            .arg(&path)
            .output()
            .expect("unshare starts");
        assert_eq!(code(&output), Some(1), "{bound}: {output:?}");
        assert_page(&fs::read_to_string(&path).expect("a report"));
    }
}

#[test]
fn a_directory_is_refused_before_anything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = folder.path().display().to_string();
    let output = doctor(&["--html", &shown]);
    assert_eq!(code(&output), Some(2), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("this is a directory"), "{complaint}");
    assert!(complaint.contains("report.html"), "{complaint}");
    assert!(output.stdout.is_empty());
    let nowhere = folder.path().join("no/such/folder/report.html");
    let output = doctor(&["--html", &nowhere.display().to_string()]);
    assert_eq!(code(&output), Some(3), "{output:?}");
    assert!(output.stdout.is_empty());
}
