//! The real `wg` against our socket.

mod beside_wireguard_go;

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::*;
use crate::testing::skip;

/// A fake interface behind real sockets, under a name nobody else has.
struct Live {
    name: String,
    interface: Arc<FakeInterface>,
    _control: Control,
}

impl Live {
    /// `None`, and the test is skipped, when it can't be.
    fn start(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip(test, "needs root for /var/run/wireguard");
            return None;
        }
        if Command::new("wg").arg("--version").output().is_err() {
            skip(test, "wg isn't installed");
            return None;
        }
        let name = unique("wsu");
        let interface = Arc::new(FakeInterface::new());
        let claim = Claim::take(&name).unwrap();
        let control = Control::start(claim, interface.clone(), |document| {
            document.insert("more".to_owned(), json!(1));
        })
        .unwrap();
        Some(Self {
            name,
            interface,
            _control: control,
        })
    }

    fn wg(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new("wg")
            .args(
                arguments
                    .iter()
                    .map(|word| word.replace("NAME", &self.name)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// What `wg` prints when it is content.
    fn content(&self, arguments: &[&str], input: &str) -> String {
        let output = self.wg(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "wg {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn path(&self) -> PathBuf {
        Path::new(UAPI_FOLDER).join(format!("{}.sock", self.name))
    }
}

fn unique(prefix: &str) -> String {
    format!("{prefix}{:08x}", rand::random::<u32>())
}

fn base64(bytes: [u8; 32]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn config() -> String {
    format!(
        "[Interface]\nListenPort = 51820\nFwMark = 0xca6c\nPrivateKey = {}\n\n\
         [Peer]\nPublicKey = {}\nPresharedKey = {}\nAllowedIPs = 10.0.0.0/24, 2001:db8::/48\nEndpoint = 192.0.2.1:51820\n\
         PersistentKeepalive = 25\n\n\
         [Peer]\nPublicKey = {}\nAllowedIPs = 0.0.0.0/0, ::/0\nEndpoint = [2001:db8::9]:1\n",
        base64([0x48; 32]),
        base64([1; 32]),
        base64([9; 32]),
        base64([2; 32]),
    )
}

/// `wg showconf`, without the order of peers and blank lines, which are nobody's business.
fn sections(config: &str) -> Vec<Vec<String>> {
    let mut sections: Vec<Vec<String>> = config
        .split('[')
        .skip(1)
        .map(|section| {
            let lines = section.lines().filter(|line| !line.is_empty());
            lines.map(ToOwned::to_owned).collect()
        })
        .collect();
    sections[1..].sort();
    sections
}

#[test]
fn wg_sets_shows_and_syncs() {
    let Some(live) = Live::start("wg_sets_shows_and_syncs") else {
        return;
    };
    live.content(&["setconf", "NAME", "/dev/stdin"], &config());
    let shown = live.content(&["showconf", "NAME"], "");
    assert_eq!(sections(&shown), sections(&config()));
    // What was shown sets the same.
    live.content(&["setconf", "NAME", "/dev/stdin"], &shown);
    assert_eq!(
        sections(&live.content(&["showconf", "NAME"], "")),
        sections(&config())
    );

    let third = base64([3; 32]);
    live.content(
        &[
            "set",
            "NAME",
            "peer",
            &third,
            "allowed-ips",
            "10.3.0.0/16",
            "endpoint",
            "198.51.100.3:3",
        ],
        "",
    );
    assert!(
        live.content(&["show", "NAME", "peers"], "")
            .contains(&third)
    );
    assert!(
        live.content(&["show", "NAME"], "")
            .contains("endpoint: 198.51.100.3:3")
    );
    assert!(
        live.content(&["show", "interfaces"], "")
            .contains(&live.name)
    );
    live.content(
        &["addconf", "NAME", "/dev/stdin"],
        &format!("[Peer]\nPublicKey = {}\n", base64([4; 32])),
    );
    assert_eq!(live.interface.tunnel().peers().len(), 4);

    // Peers that stay are the same objects, so their sessions go on.
    let stays = live.interface.tunnel().peer(&key(1)).unwrap().id();
    live.content(&["syncconf", "NAME", "/dev/stdin"], &config());
    assert_eq!(
        sections(&live.content(&["showconf", "NAME"], "")),
        sections(&config())
    );
    assert_eq!(live.interface.tunnel().peer(&key(1)).unwrap().id(), stays);

    live.content(&["set", "NAME", "peer", &base64([1; 32]), "remove"], "");
    live.content(
        &[
            "set",
            "NAME",
            "listen-port",
            "0",
            "fwmark",
            "off",
            "private-key",
            "/dev/null",
        ],
        "",
    );
    let shown = live.content(&["showconf", "NAME"], "");
    assert!(
        shown.contains("ListenPort = 50000")
            && !shown.contains("FwMark")
            && !shown.contains("PrivateKey")
    );
    assert_eq!(live.interface.tunnel().peers().len(), 1);
}

#[test]
fn wg_says_what_the_system_refused() {
    let Some(live) = Live::start("wg_says_what_the_system_refused") else {
        return;
    };
    for (arguments, text) in [
        (
            ["set", "NAME", "listen-port", "1"],
            "Address already in use",
        ),
        (
            ["set", "NAME", "fwmark", "0xdead"],
            "Operation not permitted",
        ),
    ] {
        let output = live.wg(&arguments, "");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(text),
            "{errors}"
        );
    }
}

#[test]
fn sixteen_may_talk_and_nobody_stalls_the_others() {
    let Some(live) = Live::start("sixteen_may_talk_and_nobody_stalls_the_others") else {
        return;
    };
    let mut silent: Vec<_> = (0..UAPI_PLACES - 1)
        .map(|_| UnixStream::connect(live.path()).unwrap())
        .collect();
    // In the middle of a request, which holds nobody up.
    silent[0].write_all(b"set=1\nfwmark=3\n").unwrap();
    live.content(&["set", "NAME", "fwmark", "4"], "");
    silent.push(UnixStream::connect(live.path()).unwrap());
    let mut one_more = UnixStream::connect(live.path()).unwrap();
    let mut nothing = Vec::new();
    assert_eq!(one_more.read_to_end(&mut nothing).unwrap_or(0), 0);
    silent[0].write_all(b"\n").unwrap();
    let mut answer = [0; 9];
    silent[0].read_exact(&mut answer).unwrap();
    assert_eq!((&answer, live.interface.fwmark()), (b"errno=0\n\n", 3));
}

#[test]
fn who_does_not_read_its_answer_is_left() {
    let Some(live) = Live::start("who_does_not_read_its_answer_is_left") else {
        return;
    };
    answer(&live.interface, &many_peers(10_000));
    let mut deaf = UnixStream::connect(live.path()).unwrap();
    deaf.write_all(b"get=1\n\n").unwrap();
    let peers = live.content(&["show", "NAME", "peers"], "");
    assert_eq!(peers.lines().count(), 10_000);
    std::thread::sleep(Duration::from_secs(7));
    let mut answer = Vec::new();
    deaf.read_to_end(&mut answer).unwrap();
    assert!(!answer.ends_with(b"errno=0\n\n"), "{} B", answer.len());
}

#[test]
fn anybody_may_read_statistics() {
    let Some(live) = Live::start("anybody_may_read_statistics") else {
        return;
    };
    live.content(&["show", "NAME"], "");
    let path = Path::new(STATISTICS_FOLDER).join(format!("{}.stats", live.name));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o666);
    let mut text = String::new();
    UnixStream::connect(&path)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["interface"], &document["more"]),
        (&json!("fake"), &json!(1))
    );
    assert_eq!(document["uapi"]["gets"], 1);
    assert_eq!(document["uapi"]["connections"]["refused"], 0);
}
