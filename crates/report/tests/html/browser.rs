//! A headless Chromium, spoken to over a pipe (`--remote-debugging-pipe`): no port, and nothing but the browser itself.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// Where the browser is, or why these tests can't run.
pub(crate) fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .ok_or_else(|| "chromium is not installed".to_owned())
}

pub(crate) fn skip(name: &str, reason: &str) {
    let line = format!("SKIPPED {name}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("WIRESPEED_SKIPS")
        && let Ok(mut file) = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path)
    {
        let _ = writeln!(file, "{line}");
    }
}

/// A browser with one empty tab.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// What happened meanwhile, not yet looked at.
    events: Vec<Value>,
    // Removed when the browser is gone.
    _profile: tempfile::TempDir,
}

/// What a page is looked at with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) dark: bool,
    pub(crate) print: bool,
}

/// What the browser says of a page.
#[derive(Debug)]
pub(crate) struct Seen {
    /// From the beginning of the navigation to the end of `load`, and the first picture after it.
    pub(crate) opened: Duration,
    /// Errors and warnings of the console.
    pub(crate) complaints: Vec<String>,
    /// Addresses that were asked for.
    pub(crate) asked_for: Vec<String>,
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().expect("a folder for the browser");
        // The browser reads from descriptor 3 and writes to 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#,
            ])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let to = child.stdin.take().expect("a pipe");
        let mut pipe = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|size| size > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("JSON from the browser");
                message.clear();
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            calls: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file and waits until it is shown.
    pub(crate) fn open(&mut self, file: &Path, view: View) -> Seen {
        let metrics =
            json!({"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if view.dark { "dark" } else { "light" };
        let media = json!({
            "media": if view.print { "print" } else { "" },
            "features": [{"name": "prefers-color-scheme", "value": scheme}],
        });
        self.call("Emulation.setEmulatedMedia", media);
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.wait_for("Page.loadEventFired");
        self.events.clear();
        let begun = Instant::now();
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
        self.wait_for("Page.loadEventFired");
        self.probe("new Promise(shown => requestAnimationFrame(() => setTimeout(shown, 0)))");
        let opened = begun.elapsed();
        let mut seen = Seen {
            opened,
            complaints: Vec::new(),
            asked_for: Vec::new(),
        };
        for event in self.events.drain(..) {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Log.entryAdded" => seen.complaints.push(parameters["entry"].to_string()),
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" => {
                    seen.complaints.push(parameters.to_string());
                }
                "Network.requestWillBeSent" => {
                    let address = parameters["request"]["url"].as_str().unwrap_or_default();
                    seen.asked_for.push(address.to_owned());
                }
                _ => {}
            }
        }
        seen
    }

    /// The value of an expression in the page.
    pub(crate) fn probe(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", wanted);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].take()
    }

    /// A PNG of the page, or of the first element that a CSS selector finds; no taller than so many pixels.
    pub(crate) fn picture(&mut self, selector: &str, tallest: u32) -> Vec<u8> {
        let corners = format!(
            "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(); \
             const by = Math.min(16, box.x); \
             return {{x: box.x - by, y: box.y + scrollY - by, width: box.width + 2 * by, height: Math.min(box.height + 2 * by, {tallest}), scale: 1}} }})()"
        );
        let clip = self.probe(&corners);
        let wanted = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", wanted);
        let data = answer["data"].as_str().unwrap_or_default();
        BASE64_STANDARD
            .decode(data)
            .expect("base64 from the browser")
    }

    fn call(&mut self, method: &str, parameters: impl Into<Value>) -> Value {
        self.calls += 1;
        let parameters: Value = parameters.into();
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let mut answer = self.next(method);
            if answer["id"] == json!(self.calls) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn wait_for(&mut self, event: &str) {
        let is_it = |one: &Value| one["method"] == json!(event);
        if let Some(index) = self.events.iter().position(is_it) {
            self.events.remove(index);
            return;
        }
        loop {
            let message = self.next(event);
            if is_it(&message) {
                return;
            }
            self.events.push(message);
        }
    }

    fn next(&self, what: &str) -> Value {
        self.from
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|error| panic!("{what}: no answer from the browser: {error}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
