//! A far end that means the doctor ill: what the doctor takes for ssh is this program, which hands on what the real agent
//! says and spoils it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tempfile::TempDir;

const ACT: &str = "WIRESPEED_TEST_ACT";
const NAMESPACE: &str = "WIRESPEED_TEST_NAMESPACE";

/// Counters with which an answer takes some 15 MiB, of 16 that a line may have.
const A_LINE_FULL: u32 = 700_000;
/// Intervals of a load that an answer may just have parts for.
const MANY_PIECES: usize = 125_000;
/// Counters that a machine may just have.
const JUST_POSSIBLE: u32 = 13_000;
/// Features of links that a machine may just have.
const MANY_FEATURES: u32 = 630_000;

/// What the far end does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Once the loads run, the line of an answer goes on for ever.
    EndlessLine,
    /// Once the loads run, the text of an answer is no text in any encoding.
    NoEncoding,
    /// Every answer about counters has as many as fit into a line, of other names each time.
    Gigabytes,
    /// Every answer about counters has as many as are believed, of other names each time.
    ManyNames,
    /// Every snapshot has as many features of links as are believed.
    ManyFeatures,
    /// Every answer about a load has as many intervals as an answer may have parts.
    ManyPieces,
}

const ACTS: [Act; 6] = [
    Act::EndlessLine,
    Act::NoEncoding,
    Act::Gigabytes,
    Act::ManyNames,
    Act::ManyFeatures,
    Act::ManyPieces,
];

/// Lets this program be ssh to the doctor; what is returned must live as long as the doctor.
pub(crate) fn prepare(doctor: &mut Command, act: Act, namespace: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let this = std::env::current_exe().expect("this program");
    symlink(this, folder.path().join("ssh")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    doctor.env("PATH", format!("{}:{path}", folder.path().display()));
    doctor
        .env(ACT, format!("{act:?}"))
        .env(NAMESPACE, namespace);
    folder
}

/// Is this program started for ssh?
pub(crate) fn asked_for() -> Option<Act> {
    let name = std::env::args_os().next()?;
    let wanted = std::env::var(ACT).ok()?;
    let is_ssh = Path::new(&name).ends_with("ssh");
    let mut acts = ACTS.into_iter();
    acts.find(|act| is_ssh && format!("{act:?}") == wanted)
}

/// Is the far end until the doctor has had enough.
pub(crate) fn run(act: Act) -> ExitCode {
    let namespace = std::env::var(NAMESPACE).unwrap_or_default();
    let mut agent = Command::new("ip")
        .args(["netns", "exec", &namespace])
        .args([env!("CARGO_BIN_EXE_wirespeed"), "agent"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let answers = BufReader::new(agent.stdout.take().expect("a pipe"));
    // The doctor may go away at any moment.
    let _ = hand_on(act, answers, io::stdout().lock());
    let _ = agent.kill();
    let _ = agent.wait();
    ExitCode::SUCCESS
}

fn hand_on(act: Act, answers: impl BufRead, mut out: impl Write) -> io::Result<()> {
    let mut loads_run = false;
    for (number, answer) in answers.lines().enumerate() {
        let answer = answer?;
        match act {
            Act::EndlessLine if loads_run => {
                out.write_all(br#"{"id":1,"ok":""#)?;
                loop {
                    out.write_all(&[b'x'; 4096])?;
                }
            }
            Act::NoEncoding if loads_run => {
                out.write_all(b"{\"id\":1,\"error\":\"\xc3\x28\xff\xfe\"}\n")?;
            }
            Act::Gigabytes => writeln!(out, "{}", with_counters(&answer, number, A_LINE_FULL))?,
            Act::ManyNames => writeln!(out, "{}", with_counters(&answer, number, JUST_POSSIBLE))?,
            Act::ManyFeatures => writeln!(out, "{}", with_features(&answer))?,
            Act::ManyPieces => writeln!(out, "{}", with_pieces(&answer))?,
            Act::EndlessLine | Act::NoEncoding => writeln!(out, "{answer}")?,
        }
        out.flush()?;
        // The port of a load's server.
        loads_run |= answer.contains(r#""ok":{"Port":"#);
    }
    Ok(())
}

/// An answer about counters tells of so many more than there are.
fn with_counters(answer: &str, number: usize, more: u32) -> String {
    stuffed(answer, r#""protocols":{"#, more, |counter| {
        format!(r#""{number:04}.{counter:07}":{number},"#)
    })
}

/// A snapshot tells of so many features of a link.
fn with_features(answer: &str) -> String {
    stuffed(
        answer,
        r#""offloads":{"value":{"#,
        MANY_FEATURES,
        |feature| format!(r#""{feature:07}":true,"#),
    )
}

/// So many entries more in the first list that begins like this.
fn stuffed(answer: &str, list: &str, more: u32, entry: impl Fn(u32) -> String) -> String {
    let Some((before, after)) = answer.split_once(list) else {
        return answer.to_owned();
    };
    let mut stuffed = format!("{before}{list}");
    stuffed.extend((0..more).map(entry));
    stuffed + after
}

/// An answer about a load tells of so many intervals that none of them is long.
fn with_pieces(answer: &str) -> String {
    const PIECES: &str = r#""pieces":["#;
    const PIECE: &str = r#"{"start":0.6,"seconds":0.1,"stream_bytes":[1]},"#;
    match answer.split_once(PIECES) {
        Some((before, after)) if after.starts_with('{') => {
            [before, PIECES, &PIECE.repeat(MANY_PIECES), after].concat()
        }
        _ => answer.to_owned(),
    }
}
