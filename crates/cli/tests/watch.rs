//! `wirespeed doctor --passive`: no load of its own, and what flows by itself is seen.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "support/lab.rs"]
#[expect(dead_code, reason = "other tests run the doctor with a load")]
mod lab;

use lab::{Lab, Turn, missing, skip};

/// What a watch of a second takes at most.
const A_SECOND_TAKES: Duration = Duration::from_secs(2);
/// Other work on the machine makes one of so many longer now and then; the one in the middle takes its own time.
const TRIES: usize = 3;

#[test]
fn a_watch_sends_nothing_and_sees_what_flows() {
    let test = "a_watch_sends_nothing_and_sees_what_flows";
    if let Some(reason) = missing() {
        return skip(test, &reason);
    }
    let _turn = Turn::take();
    let lab = Lab::up("healthy");

    let quiet = || {
        let begun = Instant::now();
        let (output, quiet) = watch(&lab, "1s");
        let took = begun.elapsed();
        eprintln!("a watch of a second took {took:?}");
        assert_eq!(output.status.code(), Some(0), "{quiet:#}");
        assert_eq!(quiet["verdict"], "unmeasured");
        assert_eq!(quiet["measurements"]["comparisons"], Value::Array(vec![]));
        assert!(
            bytes_out(&quiet, &lab) < 10_000.0,
            "a watch made {} bytes of its own",
            bytes_out(&quiet, &lab)
        );
        took
    };
    let mut took: Vec<Duration> = std::iter::repeat_with(quiet).take(TRIES).collect();
    took.sort();
    assert!(
        took[TRIES / 2] < A_SECOND_TAKES,
        "watches of a second took {took:?}: not most of them less than {A_SECOND_TAKES:?}"
    );

    let _transfer = Transfer::start(&lab);
    let (_, busy) = watch(&lab, "3s");
    let bytes = bytes_out(&busy, &lab);
    assert!(bytes > 1e6, "{bytes} bytes were seen of a transfer");
    let connections = busy["measurements"]["passive"]["here"]["connections"]["value"]
        .as_array()
        .expect("connections can be read");
    let moved = |connection: &Value| connection["bytes_acked"].as_f64().unwrap_or_default();
    assert!(
        connections.iter().map(moved).sum::<f64>() > 1e6,
        "{connections:#?}"
    );
    let far = &busy["measurements"]["passive"]["far"];
    assert!(far["seconds"].as_f64() > Some(2.0), "{far:#}");
}

fn watch(lab: &Lab, time: &str) -> (Output, Value) {
    let output = lab
        .here(&["doctor", &format!("wg{}0", lab.id), "--json"])
        .args(["--passive", "--for", time])
        .args(["--far", &format!("netns:{}", lab.far_end())])
        .output()
        .expect("ip netns exec runs");
    let record = wirespeed_schemas::read(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON object ({error}): {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output, record)
}

/// Bytes that left by the tunnel here. A link without any movement has no row.
fn bytes_out(record: &Value, lab: &Lab) -> f64 {
    record["measurements"]["passive"]["here"]["counters"]["links"][format!("wg{}0", lab.id)]["tx_bytes"]
        .as_f64()
        .unwrap_or_default()
}

/// Somebody else's transfer through the tunnel; ends with the test.
struct Transfer([Child; 2]);

impl Transfer {
    fn start(lab: &Lab) -> Self {
        let iperf3 = |namespace: &str, arguments: &[&str]| {
            Command::new("ip")
                .args(["netns", "exec", namespace, "iperf3"])
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("iperf3 starts")
        };
        let server = iperf3(&lab.far_end(), &["-s", "-1", "-p", "5999"]);
        std::thread::sleep(Duration::from_millis(500));
        let client = iperf3(
            &format!("ws-{}-client", lab.id),
            &["-c", "10.9.0.2", "-p", "5999", "-t", "20", "-b", "20M"],
        );
        // Past its handshake and first window.
        std::thread::sleep(Duration::from_secs(1));
        Self([server, client])
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
