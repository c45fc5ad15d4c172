//! What can be said of the program without a tunnel: help, pages, wrong input, exit codes, the shape of errors.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[path = "support/skips.rs"]
mod skips;

use skips::{is_there, skip};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirespeed");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env_remove("COLUMNS")
        .env("LC_ALL", "C")
        .output()
        .expect("the program starts")
}

/// The same where the environment asks for French.
fn run_in_french(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env_remove("LC_ALL")
        .env_remove("LC_MESSAGES")
        .env_remove("LANGUAGE")
        .env("LANG", "fr_FR.UTF-8")
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the program ends by itself")
}

/// One sentence on standard error, no debug output, nothing on standard output.
fn assert_one_sentence(output: &Output) {
    let complaint = text(&output.stderr);
    let lines: Vec<&str> = complaint.lines().collect();
    assert_eq!(lines.len(), 1, "{complaint}");
    assert!(lines[0].starts_with("wirespeed: "), "{complaint}");
    for machine_speak in ["Error(", "Os {", "panicked", "Some(", "None"] {
        assert!(!complaint.contains(machine_speak), "{complaint}");
    }
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
    })
}

/// Root, and a program to become `nobody` with?
fn setpriv() -> Option<&'static str> {
    ["/usr/bin/setpriv", "/bin/setpriv"]
        .into_iter()
        .find(|path| is_root() && Path::new(path).exists())
}

/// The command that runs the program as `nobody`.
fn as_nobody(setpriv: &str, program: &Path) -> Command {
    let mut command = Command::new(setpriv);
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--no-new-privs",
            "--",
        ])
        .arg(program);
    command
}

fn public_copy(directory: &tempfile::TempDir) -> PathBuf {
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))
        .expect("chmod");
    let copy = directory.path().join("wirespeed");
    std::fs::copy(PROGRAM, &copy).expect("copy");
    copy
}

#[test]
fn help_and_pages_need_neither_root_nor_any_program() {
    if !is_root() {
        let help = Command::new(PROGRAM)
            .arg("--help")
            .env("PATH", "/nonexistent")
            .output()
            .expect("starts");
        assert!(help.status.success());
        return;
    }
    let Some(setpriv) = setpriv() else {
        return skip(
            "help_and_pages_need_neither_root_nor_any_program",
            "setpriv is missing",
        );
    };
    let directory = tempfile::tempdir().expect("tempdir");
    let copy = public_copy(&directory);
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["doctor", "--help"],
        &["test", "--help"],
        &["tune", "--help"],
        &["tune", "undo", "--help"],
        &["lab", "up", "--help"],
        &["lab", "list"],
        &["explain"],
        &["explain", "socket-overflow"],
    ] {
        let output = as_nobody(setpriv, &copy)
            .args(arguments)
            .env("PATH", "/nonexistent")
            .output()
            .expect("setpriv starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(!output.stdout.is_empty(), "{arguments:?}");
        assert!(
            output.stderr.is_empty(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn every_command_has_an_example_in_its_help() {
    for command in ["doctor", "test", "tune", "explain", "lab"] {
        let help = text(&run(&[command, "--help"]).stdout);
        assert!(help.contains("Example"), "{command}: {help}");
    }
    let help = text(&run(&["--help"]).stdout);
    for hidden in ["agent", "tune-watch", "lab-emulator"] {
        assert!(!help.contains(hidden), "{hidden} is not for people: {help}");
    }
}

#[test]
fn a_page_is_shown_and_an_unknown_code_is_wrong_usage() {
    let page = run(&["explain", "mtu-exceeds-path"]);
    assert_eq!(code(&page), 0);
    assert!(text(&page.stdout).contains("ip link set wg0 mtu"));
    let unknown = run(&["explain", "gremlins"]);
    assert_eq!(code(&unknown), 2);
    assert_one_sentence(&unknown);
    assert!(text(&unknown.stderr).contains("wirespeed explain"));
}

#[test]
fn the_language_is_that_of_the_option_else_that_of_the_environment() {
    let page = |output: Output| text(&output.stdout);
    let (english, french) = ("What to do", "Que faire");
    let code = ["explain", "bufferbloat"];
    assert!(page(run(&code)).contains(english));
    assert!(page(run_in_french(&code)).contains(french));
    assert!(page(run(&["explain", "bufferbloat", "--lang", "fr"])).contains(french));
    assert!(page(run_in_french(&["--lang=en", "explain", "bufferbloat"])).contains(english));
}

#[test]
fn wrong_usage_is_told_in_french_and_ends_as_in_english() {
    for (arguments, told) in [
        (&["doktor"][..], "il n’y a pas de commande « doktor »"),
        (
            &["doctor", "--quik"],
            "proche de ce qui existe : « --quick »",
        ),
        (&["lab", "exec", "client"], "<COMMANDE>"),
        (&["test", "wg0", "--protocol", "sctp"], "tcp, udp"),
        (
            &["test", "wg0", "--rate", "vite"],
            "n’est pas une unité de débit",
        ),
        (&["test", "wg0", "--rate", "50mbit"], "--protocol udp"),
        (&["doctor", "wg0", "--expect", "300"], "n’a pas d’unité"),
        (&["doctor", "wg0", "--hop", "ssh://hub"], "--far <LIEU>"),
        (
            &["doctor", "wg0", "--passive", "--quick"],
            "ne peut pas être donné avec",
        ),
        (&["doctor", "wg0", "--far", "telnet://nas"], "netns:NOM"),
        (&["doctor", "wg0", "--far", "netns:a/b"], "pas un chemin"),
        (
            &["doctor", "wg0", "--far", "ssh://a:99999"],
            "« 99999 » n’est pas un port",
        ),
        (&["doctor", "wg0", "--far", "ssh://[::1"], "n’est pas fermé"),
        (
            &["doctor", "wg0", "--far", "ssh://@a"],
            "l’utilisateur devant @",
        ),
        (
            &["doctor", "wg0", "--far", "ssh://-x"],
            "passerait pour une option",
        ),
        (
            &["lab", "up", "healthy", "--name", "AB"],
            "n’est pas un nom de labo",
        ),
        (&["lab", "down", "A_B"], "n’est pas un nom de labo"),
        (
            &["lab", "up", "healthy", "--tunnel", "nonsense"],
            "n’est pas une implémentation de tunnel",
        ),
        (&["lab", "up", "/etc/passwd"], "ligne 1, colonne "),
        (&["explain", "a", "b"], "« b »"),
        (&["explain", "gremlins"], "« gremlins »"),
    ] {
        let output = run_in_french(arguments);
        let complaint = text(&output.stderr).replace('\u{202f}', " ");
        assert_eq!(code(&output), 2, "{complaint}");
        assert!(complaint.contains(told), "{told}: {complaint}");
        for english in ["error:", "Usage", " the ", "tip:", "For more"] {
            assert!(!complaint.contains(english), "{english}: {complaint}");
        }
    }
}

#[test]
fn what_scripts_read_is_english_unless_french_was_asked_for_by_name() {
    let told = |arguments: &[&str]| {
        let output = run_in_french(arguments);
        let record = wirespeed_schemas::read(&output.stdout).expect("one JSON object");
        record["error"]["what"].as_str().expect("what").to_owned()
    };
    let asked = ["test", "nosuchwg", "--json", "--quiet"];
    assert!(told(&asked).contains("has no WireGuard interface"));
    let by_name = ["--lang", "fr", "test", "nosuchwg", "--json", "--quiet"];
    assert!(told(&by_name).contains("n’a pas d’interface WireGuard"));
}

#[test]
fn output_to_a_file_has_no_colours() {
    for arguments in [
        &["explain"][..],
        &["explain", "bufferbloat"],
        &["lab", "list"],
    ] {
        assert!(
            !text(&run(arguments).stdout).contains('\u{1b}'),
            "{arguments:?}"
        );
    }
}

#[test]
fn wrong_input_is_wrong_usage() {
    for arguments in [
        &["doktor"][..],
        &["doctor", "wg0", "--far", "telnet://nas"],
        &["doctor", "wg0", "--far", "ssh://-oProxyCommand=reboot"],
        &["doctor", "wg0", "--expect", "fast"],
        &["doctor", "wg0", "--expect", "300"],
        &["doctor", "wg0", "--bare-address", "nas"],
        &["test", "wg0", "--streams", "0"],
        &["test", "wg0", "--streams", "1,many"],
        &["test", "wg0", "--direction", "sideways"],
        &["test", "wg0", "--protocol", "sctp"],
        &["test", "wg0", "--rate", "-5mbit"],
        &["test", "wg0", "--protocol", "udp"],
        &["test", "wg0", "--protocol", "udp", "--rate", "50"],
        &["test", "wg0", "--protocol", "tcp", "--rate", "50mbit"],
        &["tune", "wg0", "--expect", "300"],
        &["tune", "wg0", "--confirm-within", "soon"],
        &["tune", "wg0", "--confirm-within", "5m", "--yes"],
        &["tune", "wg0", "--confirm-within", "5m", "--plan"],
        &["tune", "wg0", "--plan", "--yes"],
        &["tune", "wg0", "--only", "gremlins"],
        &["lab", "up", "no-such-scenario"],
        &["lab", "up", "healthy", "--name", "Not A Name"],
        &["lab", "up", "healthy", "--tunnel", "openvpn"],
        &["lab", "exec", "client"],
        &["explain", "a", "b"],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_unknown_interface_is_one_sentence_and_one_object() {
    let plain = run(&["doctor", "nosuchwg", "--quiet"]);
    assert_eq!(code(&plain), 3, "{}", text(&plain.stderr));
    assert_one_sentence(&plain);
    assert!(text(&plain.stderr).contains("nosuchwg"));

    for command in ["doctor", "test", "tune"] {
        let output = run(&[command, "nosuchwg", "--json", "--quiet"]);
        assert_eq!(code(&output), 3, "{command}: {}", text(&output.stderr));
        let record = wirespeed_schemas::read(&output.stdout).expect("one JSON object");
        assert_eq!(record["schema"]["name"], format!("wirespeed.{command}"));
        assert_eq!(record["verdict"], "unmeasured");
        for field in ["what", "where", "todo"] {
            let words = record["error"][field].as_str().expect(field);
            assert!(!words.is_empty(), "{command}: {record}");
        }
    }
}

/// clap takes what stands behind an option of `tune` for its interface.
#[test]
fn a_further_command_behind_an_option_is_told_where_to_stand() {
    for further in ["undo", "confirm", "status"] {
        for options in [&["--yes"][..], &["--budget", "5m", "--quick"], &["--plan"]] {
            let arguments = [&["tune"], options, &[further]].concat();
            let output = run(&arguments);
            assert_eq!(code(&output), 3, "{arguments:?}");
            assert_one_sentence(&output);
            let told = text(&output.stderr);
            let todo = format!("(wirespeed tune {further} …)");
            assert!(told.contains(&todo), "{told}");
            let french = run_in_french(&arguments);
            assert!(text(&french.stderr).contains(&todo));
        }
    }
    let told = text(&run(&["tune", "nosuchwg"]).stderr);
    assert!(!told.contains("before any option"), "{told}");
}

#[test]
fn without_root_it_says_so() {
    let Some(setpriv) = setpriv() else {
        return skip(
            "without_root_it_says_so",
            "only root with setpriv can become nobody",
        );
    };
    let directory = tempfile::tempdir().expect("tempdir");
    let copy = public_copy(&directory);
    let output = as_nobody(setpriv, &copy)
        .args(["lab", "up", "healthy"])
        .output()
        .expect("setpriv starts");
    assert_eq!(code(&output), 3);
    assert!(
        text(&output.stderr).contains("root"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn files_that_are_no_records_are_named() {
    let directory = tempfile::tempdir().expect("tempdir");
    let missing = directory.path().join("missing.json");
    let broken = directory.path().join("broken.json");
    std::fs::write(&broken, "{\"schema\": 5}").expect("write");
    for path in [&missing, &broken] {
        let path = path.to_str().expect("UTF-8");
        for arguments in [
            &["doctor", "--from", path][..],
            &["test", "nosuchwg", "--against", path],
        ] {
            let output = run(arguments);
            assert_eq!(code(&output), 3, "{arguments:?}: {}", text(&output.stderr));
            assert_one_sentence(&output);
            assert!(
                text(&output.stderr).contains(path),
                "{arguments:?}: {}",
                text(&output.stderr)
            );
        }
    }
}

#[test]
fn what_a_complaint_quotes_does_not_steer_the_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record.json");
    let steering = r#"{"schema":{"name":"a","version":1},"verdict":"\u001b[2J"}"#;
    std::fs::write(&record, steering).expect("the file is written");
    let record = record.to_str().expect("a path in UTF-8");
    let output = run(&["test", "wg0", "--against", record]);
    assert_one_sentence(&output);
    assert!(text(&output.stderr).contains("[2J"));
    assert!(!output.stderr.contains(&0x1b), "{}", text(&output.stderr));
}

#[test]
fn a_record_that_can_not_be_written_is_said_before_anything_is_measured() {
    for arguments in [
        &["test", "wg0", "--output", "/no/such/directory/x"][..],
        &["doctor", "wg0", "--record", "/no/such/directory/x"],
        &["doctor", "wg0", "--record", "/tmp"],
        &["tune", "wg0", "--output", "/no/such/directory/x"],
        &["tune", "wg0", "--plan", "--output", "/no/such/directory/x"],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 3);
        assert_one_sentence(&output);
        let complaint = text(&output.stderr);
        assert!(complaint.contains("could not be written"), "{complaint}");
    }
}

#[test]
fn an_agent_whose_client_goes_away_ends() {
    let start = Instant::now();
    let output = Command::new(PROGRAM)
        .arg("agent")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("starts");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("\"protocol\""));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_interrupted_measurement_ends_within_a_second_and_leaves_no_child() {
    let test = "an_interrupted_measurement_ends_within_a_second_and_leaves_no_child";
    if !is_root() || !is_there("wireguard-go") || !is_there("iperf3") {
        return skip(test, "it needs root, wireguard-go and iperf3");
    }
    let lab = TestLab::up("healthy");
    let mut measuring = Command::new("ip")
        .args([
            "netns",
            "exec",
            &lab.namespace("client"),
            PROGRAM,
            "test",
            "--quiet",
            "--far",
        ])
        .arg(format!("netns:{}", lab.namespace("server")))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("ip starts");
    let begun = Instant::now();
    // Asked once and believed: a moment later it may be between two loads.
    while !lab.runs("client", "iperf3") {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(20), "the load never began");
        std::thread::sleep(Duration::from_millis(50));
    }
    let asked = Instant::now();
    // `ip netns exec` becomes the program, so the child is the program itself.
    let kill = Command::new("kill")
        .args(["-INT", &measuring.id().to_string()])
        .status()
        .expect("kill");
    assert!(kill.success());
    let status = measuring.wait().expect("it ends");
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(130));
    assert!(took < Duration::from_millis(1500), "it took {took:?}");
    let begun = Instant::now();
    while (lab.runs("client", "iperf3") || lab.runs("server", "iperf3"))
        && begun.elapsed() < Duration::from_secs(1)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        !lab.runs("client", "iperf3") && !lab.runs("server", "iperf3"),
        "a load outlived the program"
    );
}

/// A lab of this test alone; taken down whatever happens.
struct TestLab {
    name: String,
}

impl TestLab {
    fn up(scenario: &str) -> Self {
        let lab = Self {
            name: format!("s{:06x}", std::process::id() & 0x00ff_ffff),
        };
        let output = run(&["lab", "up", scenario, "--name", &lab.name]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        lab
    }

    fn namespace(&self, host: &str) -> String {
        format!("ws-{}-{host}", self.name)
    }

    /// Does a program of this name run on a host?
    fn runs(&self, host: &str, program: &str) -> bool {
        let pids = Command::new("ip")
            .args(["netns", "pids", &self.namespace(host)])
            .output()
            .expect("ip starts");
        text(&pids.stdout).split_whitespace().any(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm.trim() == program)
        })
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        run(&["lab", "down", &self.name]);
    }
}
