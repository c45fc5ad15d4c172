//! Two ends of a tunnel, each in a network namespace of its own and each carried by a program of its own.
//!
//! ```text
//!  namespace a                                             namespace b
//!  tunnel 10.98.0.1/24, fd98::1/64                         tunnel 10.98.0.2/24, fd98::2/64
//!  road   10.99.0.1/24, fd99::1/64  ── veth, MTU 1500 ──   road   10.99.0.2/24, fd99::2/64
//! ```

pub(crate) mod loads;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

/// The port both ends listen on at first.
pub(crate) const PORT: u16 = 51_820;

const START_WITHIN: Duration = Duration::from_secs(10);

/// An answer that comes later than this after ping's end is lost.
const LATE: Duration = Duration::from_secs(2);

/// Who carries one end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Wirespeed,
    WireguardGo,
    Gotatun,
    Boringtun,
    /// No program: the kernel's own driver.
    Kernel,
}

impl Program {
    /// Where the program is, or why it isn't there; for the kernel, whether it has the driver.
    fn path(self) -> Result<PathBuf, String> {
        let name = match self {
            Program::Kernel => return kernel_has_wireguard().map(|()| PathBuf::new()),
            Program::Wirespeed => {
                // Another build of ours, an optimised one for instance.
                let other = std::env::var_os("WIRESPEED_DEVICE");
                return Ok(other.map_or_else(
                    || env!("CARGO_BIN_EXE_wirespeed-device").into(),
                    PathBuf::from,
                ));
            }
            Program::WireguardGo => "wireguard-go",
            Program::Gotatun => "gotatun",
            Program::Boringtun => "boringtun",
        };
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
        let path = cache.join("bin").join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err(
            match fs::read_to_string(cache.join(format!("{name}.failed"))) {
                Ok(why) => format!("{name} could not be built: {}", why.trim()),
                Err(_) => format!("{name} is not built (make peers)"),
            },
        )
    }

    fn start(self, namespace: &str, options: &str, interface: &str, log: &Path) -> Child {
        let path = self.path().expect("asked for before");
        let out = File::create(log).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(path);
        // They would become the user who logged in, if there is one.
        if matches!(self, Program::Boringtun | Program::Gotatun) {
            command.arg("--disable-drop-privileges");
        }
        if self == Program::Boringtun {
            // Its connected sockets can't leave an address that went.
            command.arg("--disable-connected-udp");
        }
        command.args(options.split_whitespace());
        command.args(["-f", interface]);
        command
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap()
    }
}

/// Found out by trying, since loading the module is part of it.
fn kernel_has_wireguard() -> Result<(), String> {
    let name = format!("wsk{:05x}", std::process::id() & 0xf_ffff);
    let made = Command::new("ip")
        .args(["link", "add", &name, "type", "wireguard"])
        .stderr(Stdio::null())
        .status();
    if made.is_ok_and(|status| status.success()) {
        run("ip", &["link", "del", &name]);
        return Ok(());
    }
    Err("this kernel has no WireGuard (make test-kernel)".to_owned())
}

/// Which IP the tunnel's datagrams travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outer {
    V4,
    V6,
}

/// What the tests need and this machine lacks, if anything.
pub(crate) fn missing(programs: &[Program]) -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("needs root (network namespaces)".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    if let Some(program) = ["ip", "wg", "ping", "nstat"].into_iter().find(|program| {
        !std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        })
    }) {
        return Some(format!("{program} is not installed"));
    }
    programs.iter().find_map(|program| program.path().err())
}

pub(crate) fn skip(name: &str, reason: &str) {
    let line = format!("SKIPPED {name}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = File::options().append(true).create(true).open(path)
    {
        // At once, so that lines of tests that run at the same time don't mix.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// A tunnel between two programs. Everything of it goes with it.
pub(crate) struct Tunnel {
    pub(crate) a: End,
    pub(crate) b: End,
    psk: String,
}

impl Tunnel {
    /// Both ends started and configured, with a preshared key; only `a` knows the other's endpoint, so that `a` begins.
    pub(crate) fn up(a: Program, b: Program, outer: Outer) -> Self {
        Self::up_with((a, ""), (b, ""), outer)
    }

    /// The same with options for the programs.
    pub(crate) fn up_with(
        a: (Program, &'static str),
        b: (Program, &'static str),
        outer: Outer,
    ) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let id = format!(
            "{:05x}{:x}",
            std::process::id() & 0xf_ffff,
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let ends = [(a, "a", 1), (b, "b", 2)].map(|((program, options), side, number)| End {
            program,
            options,
            namespace: format!("ws-{id}-{side}"),
            interface: format!("wsi{id}{side}"),
            number,
            private: wg_key("genkey", ""),
            daemon: None,
            log: std::env::temp_dir().join(format!("wsi{id}{side}.log")),
        });
        let [a, b] = ends;
        let mut tunnel = Self {
            a,
            b,
            psk: wg_key("genpsk", ""),
        };
        tunnel.lay_road();
        for end in [&mut tunnel.a, &mut tunnel.b] {
            end.start();
        }
        let endpoint = tunnel.b.road(outer, PORT);
        tunnel.configure_a(Some(endpoint));
        tunnel.configure_b(None);
        tunnel
    }

    fn lay_road(&self) {
        for end in [&self.a, &self.b] {
            run("ip", &["netns", "add", &end.namespace]);
            // Addresses can be used at once, and a second one survives the first.
            let settings = [
                "net.ipv6.conf.default.accept_dad=0",
                "net.ipv4.conf.default.promote_secondaries=1",
            ];
            for setting in settings {
                end.run("sysctl", &["-q", "-w", setting]);
            }
            end.ip("link set lo up");
        }
        self.a.ip(&format!(
            "link add road type veth peer name road netns {}",
            self.b.namespace
        ));
        for end in [&self.a, &self.b] {
            end.ip(&format!("addr add 10.99.0.{}/24 dev road", end.number));
            end.ip(&format!("addr add fd99::{}/64 dev road", end.number));
            end.ip("link set road up");
        }
    }

    pub(crate) fn configure_a(&self, endpoint: Option<SocketAddr>) {
        self.a.configure(&self.b, &self.psk, endpoint);
    }

    pub(crate) fn configure_b(&self, endpoint: Option<SocketAddr>) {
        self.b.configure(&self.a, &self.psk, endpoint);
    }

    /// The end that is ours. Not every program tells the time of its last handshake as it should.
    pub(crate) fn ours(&self) -> &End {
        [&self.a, &self.b]
            .into_iter()
            .find(|end| end.program == Program::Wirespeed)
            .expect("one of them is ours")
    }

    /// One end forgets the other and all keys with it, and learns it anew.
    pub(crate) fn forget_and_learn(&self, end: &End, other: &End, endpoint: SocketAddr) {
        end.wg(&["set", &end.interface, "peer", &other.public(), "remove"]);
        end.configure(other, &self.psk, Some(endpoint));
    }

    /// What both programs said and how the tunnel looks, for a failed test.
    pub(crate) fn state(&self) -> String {
        let mut text = String::new();
        for end in [&self.a, &self.b] {
            let _ = writeln!(text, "--- {:?} in {}", end.program, end.namespace);
            text += &end.said("wg", &["show", &end.interface]);
            text += &end.said("ip", &["-s", "addr"]);
            text += &end.said("nstat", &["-as"]);
            text += &end.statistics();
            let log = fs::read_to_string(&end.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            text += &lines[lines.len().saturating_sub(40)..].join("\n");
            text.push('\n');
        }
        text
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.state());
        }
        for end in [&mut self.a, &mut self.b] {
            end.stop();
            let _ = Command::new("ip")
                .args(["netns", "del", &end.namespace])
                .stderr(Stdio::null())
                .status();
            let _ = fs::remove_file(&end.log);
            let _ = fs::remove_file(end.socket());
        }
    }
}

/// One end of a tunnel.
pub(crate) struct End {
    pub(crate) program: Program,
    options: &'static str,
    namespace: String,
    pub(crate) interface: String,
    number: u8,
    private: String,
    daemon: Option<Child>,
    log: PathBuf,
}

impl End {
    /// Starts the program and gives its interface the addresses.
    pub(crate) fn start(&mut self) {
        let interface = self.interface.clone();
        if self.program == Program::Kernel {
            self.ip(&format!("link add {interface} type wireguard"));
        } else {
            self.start_daemon();
        }
        self.ip(&format!(
            "addr add 10.98.0.{}/24 dev {interface}",
            self.number
        ));
        self.ip(&format!(
            "addr add fd98::{}/64 dev {interface}",
            self.number
        ));
        self.ip(&format!("link set {interface} mtu 1420 up"));
    }

    fn start_daemon(&mut self) {
        let daemon = self
            .program
            .start(&self.namespace, self.options, &self.interface, &self.log);
        self.daemon = Some(daemon);
        let end = Instant::now() + START_WITHIN;
        while UnixStream::connect(self.socket()).is_err() {
            let gone = self.daemon.as_mut().unwrap().try_wait().unwrap();
            assert!(
                gone.is_none() && Instant::now() < end,
                "{:?} did not start ({gone:?}): {}",
                self.program,
                fs::read_to_string(&self.log).unwrap_or_default()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the program without a chance to say goodbye; the kernel's interface goes.
    pub(crate) fn kill(&mut self) {
        if self.program == Program::Kernel {
            self.ip(&format!("link del {}", self.interface));
            return;
        }
        let mut daemon = self.daemon.take().expect("it runs");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(daemon.id().cast_signed()),
                nix::sys::signal::Signal::SIGTERM,
            );
            let end = Instant::now() + Duration::from_secs(3);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < end {
                thread::sleep(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    fn configure(&self, other: &End, psk: &str, endpoint: Option<SocketAddr>) {
        let mut text = format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n[Peer]\nPublicKey = {}\nPresharedKey = {psk}\nAllowedIPs = 10.98.0.{2}/32, fd98::{2}/128\n",
            self.private,
            other.public(),
            other.number,
        );
        if let Some(endpoint) = endpoint {
            let _ = writeln!(text, "Endpoint = {endpoint}");
        }
        let mut wg = Command::new("ip")
            .args(["netns", "exec", &self.namespace])
            .args([
                "timeout",
                "10",
                "wg",
                "addconf",
                &self.interface,
                "/dev/stdin",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        wg.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(wg.wait().unwrap().success(), "{:?}: {text}", self.program);
    }

    /// Its address on the road, with a port.
    pub(crate) fn road(&self, outer: Outer, port: u16) -> SocketAddr {
        let address: IpAddr = match outer {
            Outer::V4 => IpAddr::from([10, 99, 0, self.number]),
            Outer::V6 => format!("fd99::{}", self.number).parse().unwrap(),
        };
        (address, port).into()
    }

    /// Its address in the tunnel.
    pub(crate) fn inner(&self, outer: Outer) -> IpAddr {
        match outer {
            Outer::V4 => IpAddr::from([10, 98, 0, self.number]),
            Outer::V6 => format!("fd98::{}", self.number).parse().unwrap(),
        }
    }

    pub(crate) fn public(&self) -> String {
        wg_key("pubkey", &self.private)
    }

    fn socket(&self) -> PathBuf {
        format!("/var/run/wireguard/{}.sock", self.interface).into()
    }

    pub(crate) fn wg(&self, arguments: &[&str]) -> String {
        self.run("wg", arguments)
    }

    pub(crate) fn ip(&self, line: &str) -> String {
        let words: Vec<_> = line.split_whitespace().collect();
        self.run("ip", &words)
    }

    pub(crate) fn nft(&self, line: &str) -> String {
        self.run("nft", &[line])
    }

    /// The one peer's column of `wg show INTERFACE WHAT`.
    pub(crate) fn show(&self, what: &str) -> String {
        let line = self.wg(&["show", &self.interface, what]);
        let (_, value) = line.trim().split_once('\t').expect("one peer");
        value.to_owned()
    }

    /// When the last handshake was, in seconds since 1970; 0 for never.
    pub(crate) fn handshake(&self) -> u64 {
        self.show("latest-handshakes").parse().unwrap()
    }

    /// Runs a program in this end's namespace, for ten seconds at most: a peer that is stuck would hold up `wg` forever.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut all = vec!["netns", "exec", &self.namespace, "timeout", "10", program];
        all.extend(arguments);
        run("ip", &all)
    }

    /// What a device of ours counted, in JSON.
    fn statistics(&self) -> String {
        let mut text = String::new();
        let path = format!("/run/wirespeed/{}.stats", self.interface);
        if let Ok(mut stream) = UnixStream::connect(path) {
            let _ = stream.read_to_string(&mut text);
            text.push('\n');
        }
        text
    }

    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.namespace, "timeout", "10", program])
            .args(arguments)
            .output();
        output.map_or_else(
            |error| error.to_string(),
            |output| {
                String::from_utf8_lossy(&output.stdout).into_owned()
                    + &String::from_utf8_lossy(&output.stderr)
            },
        )
    }

    /// Pings with options in ping's own words; what it said, if every one was answered, else the same as an error.
    pub(crate) fn ping(&self, to: IpAddr, options: &str) -> Result<String, String> {
        let options: Vec<_> = options.split_whitespace().collect();
        let answers = match to {
            IpAddr::V4(_) => "IcmpInEchoReps",
            IpAddr::V6(_) => "Icmp6InEchoReplies",
        };
        let before = self.counter(answers);
        let output = Command::new("ip")
            .args(["netns", "exec", &self.namespace, "ping"])
            .args(options)
            .arg(to.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let [sent, received] = [" packets transmitted", " received"].map(|what| {
            let number = said.split(what).next()?.rsplit([' ', '\n']).next()?;
            number.parse::<u64>().ok()
        });
        let all = match sent.zip(received) {
            None | Some((_, 0)) => false,
            // Once it was answered, ping stays no longer than two round trips or an interval after its last echo, whatever
            // -W says. The kernel counts an answer that comes later.
            Some((sent, received)) => {
                received == sent || within(LATE, || self.counter(answers) - before >= sent)
            }
        };
        if all {
            Ok(said)
        } else {
            Err(format!(
                "{:?} to {to}: {said}{}",
                self.program,
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }

    /// What the kernel counted in this end's namespace, under nstat's name of it.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let said = self.run("nstat", &["-asz", name]);
        let mut words = said.split_whitespace().skip_while(|word| *word != name);
        let count = words.nth(1).and_then(|count| count.parse().ok());
        count.unwrap_or_else(|| panic!("nstat {name}: {said}"))
    }

    /// How long until a ping comes back, trying five times a second.
    pub(crate) fn answered_within(&self, to: IpAddr, limit: Duration) -> Option<Duration> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if self.ping(to, "-c 1 -W 0.2").is_ok() {
                return Some(began.elapsed());
            }
        }
        None
    }

    /// Runs something in a thread inside this end's namespace.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
        thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }
}

/// `wg genkey`, `wg genpsk`, `wg pubkey`.
fn wg_key(what: &str, input: &str) -> String {
    let mut wg = Command::new("wg")
        .arg(what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wg.stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = wg.wait_with_output().unwrap();
    assert!(output.status.success(), "wg {what}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether something becomes so in time.
fn within(limit: Duration, so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if so() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
