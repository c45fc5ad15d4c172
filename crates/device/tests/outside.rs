//! The test suites that others wrote, with short loads; `scripts/outside-suites` runs them in full.

use std::path::Path;
use std::process::Command;

use support::peers::skip;

mod support {
    #[allow(dead_code, reason = "the namespaces are the suite's own")]
    pub(crate) mod peers;
}

#[test]
fn wireguard_gos_own_suite_passes() {
    const TEST: &str = "wireguard_gos_own_suite_passes";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("target/peers/wireguard-go.source").exists() {
        return skip(TEST, "wireguard-go's source is not there (make peers)");
    }
    let output = Command::new(root.join("scripts/outside-suites"))
        .args(["--quick", "--program"])
        .arg(env!("CARGO_BIN_EXE_wirespeed-device"))
        .arg("wireguard-go")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => {}
        Some(3) => skip(TEST, said.trim().trim_start_matches("wireguard-go: ")),
        code => panic!(
            "exit code {code:?}\n{said}{}",
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
