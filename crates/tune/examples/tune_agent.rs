//! An agent with the operations of this crate and nothing else, its own watchdog, and a tune by script:
//! what the tests of the crate run and kill.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use wirespeed_reach::{Machine, OpenOptions, Operations, Place, serve};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["agent"] => {
            let mut operations = Operations::default();
            wirespeed_tune::register(&mut operations);
            serve(operations, std::io::stdin(), std::io::stdout())?;
        }
        ["tune-watch", "--journal", journal] => wirespeed_tune::watch::run(Path::new(journal))?,
        ["cycle"] => cycle()?,
        _ => return Err("usage: tune_agent agent | tune-watch --journal PATH | cycle".into()),
    }
    Ok(())
}

/// Begin, apply, revert, apply, keep, on every knob that a veth link has; then wait to be killed or undone.
fn cycle() -> Result<(), Box<dyn Error>> {
    let machine = Machine::open(&Place::Here, &OpenOptions::default())?;
    let call = |operation: &str, params: Value| {
        machine.call::<_, Value>(operation, &params, Duration::from_secs(20))
    };
    call(
        "tune.begin",
        json!({"interface": "ws0", "probe_address": null, "trial_seconds": 60}),
    )?;
    let changes = [
        (json!({"knob": "link-mtu", "interface": "ws0"}), json!(1340)),
        (
            json!({"knob": "sysctl", "name": "net.ipv4.tcp_mtu_probing"}),
            json!(1),
        ),
        (
            json!({"knob": "route-congestion", "interface": "ws0"}),
            json!("bbr"),
        ),
        (
            json!({"knob": "egress-shaper", "interface": "ws0"}),
            json!(50_000_000),
        ),
    ];
    for (setting, value) in &changes {
        for _ in 0..2 {
            call("tune.apply", json!({"setting": setting, "value": value}))?;
            call("tune.revert", json!({"setting": setting}))?;
        }
        call("tune.apply", json!({"setting": setting, "value": value}))?;
    }
    let settings: Vec<&Value> = changes.iter().map(|(setting, _)| setting).collect();
    call(
        "tune.keep",
        json!({"settings": settings, "confirm_within": 0.3}),
    )?;
    println!("kept");
    Ok(())
}
