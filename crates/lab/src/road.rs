//! The road: what it does to packets in each direction.
//!
//! ```text
//! first end → cable → [policy route → delay device →] main route (MTU) → nft (loss) → tbf (rate, queue) → cable → second end
//! ```
//!
//! - **Rate and queue**: `tbf` on the cable by which the direction leaves; its `limit` is the queue.
//! - **MTU**: an MTU on the *route* by which the direction leaves. The cable itself stays as wide as it is, since a veth
//!   drops what arrives larger than its own MTU, and the other direction arrives there.
//! - **Loss**: nftables' random match where packets are forwarded to that cable.
//! - **MSS**: nftables lowers it in passing connections to what the route takes.
//! - **ICMP**: the road's own errors are dropped on their way out, back to the sender.
//! - **Delay**: what comes in by a cable is routed through a device that holds it, and comes back to be routed again. The
//!   device is a looped veth pair with the kernel's netem, or a TUN with the emulator behind it (see [`crate::emulator`]).

use std::fmt::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::Runner;
use crate::hosts::set_sysctl;
use crate::topology::{End, ROAD};
use crate::units::{Queue, Rate};
use crate::up::EmulatorCommand;
use crate::{DelayMeans, Icmp, Lab, LabError, RoadDirection, Span, Way, emulator, netns, state};

/// Queue before a bottleneck for which the scenario gives none.
const DEFAULT_QUEUE: Queue = Queue::Time(Duration::from_millis(20));

/// How long the emulator may take to open its devices.
const EMULATOR_WITHIN: Duration = Duration::from_secs(5);

/// One direction with the names it needs.
struct Lane {
    way: Way,
    /// Cable by which it comes in, which is also the one back to its senders.
    from: End,
    /// Cable by which it leaves.
    to: End,
    /// Device that delays it.
    device: &'static str,
    /// Routing table of what comes in, which is also the preference of its rule.
    table: u32,
}

fn lanes(lab: &Lab) -> [Lane; 2] {
    let [first, second] = lab.scenario.topology.ends();
    let road = &lab.scenario.road;
    [
        Lane {
            way: road.way(RoadDirection::Up),
            from: first,
            to: second,
            device: "delayup",
            table: 101,
        },
        Lane {
            way: road.way(RoadDirection::Down),
            from: second,
            to: first,
            device: "delaydown",
            table: 102,
        },
    ]
}

/// Gives the road its properties.
pub(crate) fn shape(
    runner: &Runner,
    lab: &mut Lab,
    emulator: &EmulatorCommand,
) -> Result<(), LabError> {
    let lanes = lanes(lab);
    for lane in &lanes {
        if let Some(rate) = lane.way.rate {
            limit_rate(runner, lane, rate)?;
        }
        if let Some(mtu) = lane.way.mtu {
            let line = format!(
                "route replace {} dev {} proto kernel scope link src {} mtu {}",
                lane.to.road_network,
                lane.to.host,
                lane.to.road_gateway,
                mtu.bytes()
            );
            runner.ip("narrow the road's MTU", ROAD, &line)?;
        }
    }
    filter(runner, lab, &lanes)?;
    delay(runner, lab, &lanes, emulator)
}

fn limit_rate(runner: &Runner, lane: &Lane, rate: Rate) -> Result<(), LabError> {
    let bits = rate.bits_per_second();
    let queue = lane.way.queue.unwrap_or(DEFAULT_QUEUE).bytes(rate);
    let line = format!(
        "qdisc replace dev {} root tbf rate {bits}bit burst {} limit {queue}",
        lane.to.host,
        burst(rate)
    );
    runner.tc("limit the road's rate", ROAD, &line)?;
    Ok(())
}

/// Bytes that may pass at once: enough that a timer that is late by two milliseconds does not cost rate, and at least
/// two full-size packets.
fn burst(rate: Rate) -> u64 {
    (rate.bits_per_second() / 8 / 500).max(3028)
}

/// Loss, lost ICMP errors and address translation, as one nftables file.
fn filter(runner: &Runner, lab: &Lab, lanes: &[Lane; 2]) -> Result<(), LabError> {
    let mut forward = String::new();
    let mut output = String::new();
    for lane in lanes {
        if let Some(loss) = lane.way.loss.filter(|l| l.per_million() > 0) {
            let _ = writeln!(
                forward,
                "oifname \"{}\" numgen random mod 1000000 < {} counter drop",
                lane.to.host,
                loss.per_million()
            );
        }
        if lane.way.icmp == Some(Icmp::Drop) {
            let back = lane.from.host;
            let _ = writeln!(
                output,
                "oifname \"{back}\" icmp type {{ destination-unreachable, time-exceeded }} counter drop"
            );
        }
    }
    if lab.scenario.road.clamp_mss {
        forward.push_str("tcp flags syn tcp option maxseg size set rt mtu\n");
    }
    let mut text = String::new();
    if !forward.is_empty() || !output.is_empty() {
        let _ = write!(
            text,
            "table inet road {{\nchain forward {{ type filter hook forward priority 0;\n{forward}}}\n\
             chain output {{ type filter hook output priority 0;\n{output}}}\n}}\n"
        );
    }
    if lab.scenario.road.nat.is_some() {
        // What passes a delay device is routed twice; only the pass nearer the second end is tracked.
        let [up, down] = lanes;
        let mut raw = String::new();
        if up.way.delay.is_some() {
            let _ = writeln!(raw, "iifname \"{}\" notrack", up.from.host);
        }
        if down.way.delay.is_some() {
            let _ = writeln!(raw, "iifname \"{}\" notrack", down.device);
        }
        let _ = write!(
            text,
            "table ip translate {{\nchain raw {{ type filter hook prerouting priority -300;\n{raw}}}\n\
             chain postrouting {{ type nat hook postrouting priority 100;\noifname \"{}\" masquerade\n}}\n}}\n",
            up.to.host
        );
    }
    if text.is_empty() {
        return Ok(());
    }
    runner.exec(
        "set up the road's packet filter",
        ROAD,
        &["nft", "-f", "-"],
        Some(&text),
    )?;
    if let Some(nat) = lab.scenario.road.nat {
        let seconds = nat.udp_timeout.duration().as_secs().to_string();
        netns::inside(&netns::path(&lab.id.namespace(ROAD)), || {
            for name in [
                "nf_conntrack_udp_timeout",
                "nf_conntrack_udp_timeout_stream",
            ] {
                set_sysctl(&format!("net.netfilter.{name}"), &seconds).map_err(|why| {
                    LabError::Setting {
                        host: ROAD.to_owned(),
                        why,
                    }
                })?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn delay(
    runner: &Runner,
    lab: &mut Lab,
    lanes: &[Lane; 2],
    emulator: &EmulatorCommand,
) -> Result<(), LabError> {
    let delayed: Vec<(&Lane, Duration)> = lanes
        .iter()
        .filter_map(|lane| {
            Some((
                lane,
                lane.way
                    .delay
                    .map(Span::duration)
                    .filter(|d| !d.is_zero())?,
            ))
        })
        .collect();
    if delayed.is_empty() {
        return Ok(());
    }
    if has_netem(runner) {
        lab.delay = DelayMeans::Netem;
        for (lane, delay) in &delayed {
            netem(runner, lane, *delay)?;
        }
    } else {
        lab.delay = DelayMeans::Emulator;
        start_emulator(runner, lab, &delayed, emulator)?;
    }
    for (lane, _) in &delayed {
        let step = "route the road through its delay";
        runner.ip(
            step,
            ROAD,
            &format!("route add default dev {} table {}", lane.device, lane.table),
        )?;
        runner.ip(
            step,
            ROAD,
            &format!(
                "rule add pref {0} iif {1} lookup {0}",
                lane.table, lane.from.host
            ),
        )?;
    }
    Ok(())
}

/// Has the kernel netem? Found out by trying, on the road's own loopback.
fn has_netem(runner: &Runner) -> bool {
    let step = "try netem";
    runner
        .tc(step, ROAD, "qdisc add dev lo root netem delay 1ms")
        .is_ok()
        && runner.tc(step, ROAD, "qdisc del dev lo root").is_ok()
}

/// A veth pair inside the road: what is sent into one end comes out of the other, later. Both ends have the same
/// hardware address and no ARP, so every packet is for the other end.
fn netem(runner: &Runner, lane: &Lane, delay: Duration) -> Result<(), LabError> {
    let step = "delay the road with netem";
    let device = lane.device;
    let back = format!("{device}-out");
    runner.ip(
        step,
        ROAD,
        &format!("link add {device} type veth peer name {back}"),
    )?;
    for interface in [device, &back] {
        runner.ip(
            step,
            ROAD,
            &format!("link set {interface} address 02:00:00:00:00:01 arp off mtu 65535 up"),
        )?;
    }
    let packets = emulator::packets_held(delay);
    let line = format!(
        "qdisc replace dev {device} root netem delay {}us limit {packets}",
        delay.as_micros()
    );
    runner.tc(step, ROAD, &line)?;
    Ok(())
}

fn start_emulator(
    runner: &Runner,
    lab: &Lab,
    delayed: &[(&Lane, Duration)],
    emulator: &EmulatorCommand,
) -> Result<(), LabError> {
    let failed = |why: String| LabError::Emulator(why);
    let log_path = state::log_of(&lab.id, "emulator");
    let log = std::fs::File::create(&log_path).map_err(LabError::file("create", &log_path))?;
    let program = emulator.program.to_string_lossy();
    let mut line: Vec<&str> = vec![&program];
    line.extend(emulator.arguments.iter().map(String::as_str));
    let delays: Vec<String> = delayed
        .iter()
        .map(|(lane, delay)| format!("{}:{}us", lane.device, delay.as_micros()))
        .collect();
    line.extend(delays.iter().map(String::as_str));
    let mut command = runner.in_host(ROAD, &line);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let daemon =
        crate::tunnel::spawn_daemon(command).map_err(|e| failed(format!("{program}: {e}")))?;
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(&log_path).unwrap_or_default();
        if text.lines().any(|l| l == emulator::READY) {
            return Ok(());
        }
        if daemon.ended() {
            return Err(failed(format!("it ended at once: {}", text.trim())));
        }
        if began.elapsed() > EMULATOR_WITHIN {
            return Err(failed(format!(
                "it was not ready within {} s: {}",
                EMULATOR_WITHIN.as_secs(),
                text.trim()
            )));
        }
        thread::sleep(Duration::from_millis(2));
    }
}
