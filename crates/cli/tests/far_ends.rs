//! The doctor with each kind of far end: over a real OpenSSH server, with an iperf3 server only, and with nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "support/lab.rs"]
mod lab;
#[path = "support/settled.rs"]
mod settled;

use lab::{Lab, Turn, missing, skip};
use settled::settled;

/// The server's address on the road of a lab with the topology client – road – server.
const SERVER: &str = "198.51.100.2";
/// The server's address in the tunnel.
const SERVER_INSIDE: &str = "10.9.0.2";
const SSH_PORT: &str = "2022";

#[test]
fn over_ssh_everything_is_known() {
    let Some((_turn, lab)) = healthy("doctor over ssh") else {
        return;
    };
    let keys = tempfile::tempdir().expect("a directory for keys");
    let folder = keys.path();
    for name in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.join(name))
            .status()
            .expect("ssh-keygen runs");
        assert!(made.success());
    }
    let (known_hosts, configuration) = (folder.join("known_hosts"), folder.join("sshd_config"));
    let host_key = fs::read_to_string(folder.join("host.pub")).expect("a host key");
    fs::write(&known_hosts, format!("[{SERVER}]:{SSH_PORT} {host_key}")).expect("known hosts");
    fs::copy(folder.join("user.pub"), folder.join("authorized_keys")).expect("authorized keys");
    fs::set_permissions(
        folder.join("authorized_keys"),
        fs::Permissions::from_mode(0o600),
    )
    .expect("permissions");
    let shown = folder.display();
    fs::write(
        &configuration,
        format!(
            "Port {SSH_PORT}\nListenAddress {SERVER}\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/authorized_keys\n\
             PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n"
        ),
    )
    .expect("a configuration");
    fs::create_dir_all("/run/sshd").expect("sshd's own directory");
    let _server = Server::start(
        &lab,
        &[
            "/usr/sbin/sshd",
            "-D",
            "-e",
            "-f",
            &configuration.to_string_lossy(),
        ],
        SSH_PORT,
    );

    let known = format!("UserKnownHostsFile={}", known_hosts.display());
    let user = folder.join("user");
    let (far, user) = (
        format!("ssh://root@{SERVER}:{SSH_PORT}"),
        format!("--ssh-option={}", user.display()),
    );
    let known = format!("--ssh-option={known}");
    let arguments = [
        "--far",
        &far,
        "--far-program",
        env!("CARGO_BIN_EXE_wirespeed"),
        "--ssh-option=-i",
        &user,
        "--ssh-option=-o",
        &known,
    ];
    let (output, _) = settled("over ssh", || lab.doctor(&arguments));
    let report = parsed(&output.stdout, &output.stderr);
    assert_eq!(report["verdict"], "healthy", "{report:#}");
    assert_eq!(report["machines"].as_array().map(Vec::len), Some(2));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn with_an_iperf3_server_only_the_rest_is_said_to_be_unknown() {
    let Some((_turn, lab)) = healthy("doctor with an iperf3 server only") else {
        return;
    };
    let _server = Server::start(&lab, &["iperf3", "-s"], "5201");
    let far = format!("iperf3://{SERVER}");
    let arguments = ["--far", &far, "--tunnel-address", SERVER_INSIDE];
    let (output, _) = settled("an iperf3 server only", || lab.doctor(&arguments));
    let report = parsed(&output.stdout, &output.stderr);
    assert_eq!(report["verdict"], "healthy", "{report:#}");
    assert_eq!(report["machines"].as_array().map(Vec::len), Some(1));
    assert!(
        report["not_checked"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
        "{report:#}"
    );
}

#[test]
fn with_nothing_there_one_side_says_what_it_can() {
    let Some((_turn, lab)) = healthy("doctor with nothing at the far end") else {
        return;
    };
    let output = lab.doctor(&[]);
    let report = parsed(&output.stdout, &output.stderr);
    assert_eq!(
        report["findings"].as_array().map(Vec::len),
        Some(0),
        "{report:#}"
    );
    assert_eq!(report["verdict"], "unmeasured");
    assert!(
        report["not_checked"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
        "{report:#}"
    );
    assert_eq!(output.status.code(), Some(3));
}

fn healthy(test: &str) -> Option<(Turn, Lab)> {
    let lacks = missing().or_else(|| {
        (!Path::new("/usr/sbin/sshd").exists()).then(|| "sshd is not installed".to_owned())
    });
    if let Some(reason) = lacks {
        skip(test, &reason);
        return None;
    }
    let turn = Turn::take();
    let lab = Lab::up("healthy");
    eprintln!("{test} over {}", lab.implementation);
    Some((turn, lab))
}

fn parsed(stdout: &[u8], stderr: &[u8]) -> Value {
    wirespeed_schemas::read(stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(stderr)))
}

/// A server in the lab's server namespace; ends with the test.
struct Server(Child);

impl Server {
    fn start(lab: &Lab, command: &[&str], port: &str) -> Self {
        let namespace = lab.far_end();
        let child = Command::new("ip")
            .args(["netns", "exec", &namespace])
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self(child);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            let listening = Command::new("ip")
                .args([
                    "netns",
                    "exec",
                    &namespace,
                    "ss",
                    "-Hltn",
                    &format!("sport = :{port}"),
                ])
                .output()
                .expect("ss runs");
            if !listening.stdout.is_empty() {
                return server;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{command:?} does not listen on port {port}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
