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
//! - **Policing of UDP, lost super-packets**: nftables too.
//! - **MSS**: nftables lowers it in passing connections to what the route takes.
//! - **ICMP**: the road's own errors are dropped on their way out, back to the sender.
//! - **Delay**: what comes in by a cable is routed through a device that holds it, and comes back to be routed again. The
//!   device is a looped veth pair with the kernel's netem, or a TUN with the emulator behind it (see [`crate::emulator`]).
//! - **Packets that others overtake, that come twice, a road that gives up above a rate**: always the emulator.

use std::fmt::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::Runner;
use crate::hosts::set_sysctl;
use crate::topology::{End, Leg};
use crate::units::{Queue, Rate};
use crate::up::EmulatorCommand;
use crate::{
    DelayMeans, Fate, Lab, LabError, Road, RoadDirection, Span, Way, emulator, netns, state,
};

/// Queue before a bottleneck for which the scenario gives none.
const DEFAULT_QUEUE: Queue = Queue::Time(Duration::from_millis(20));

/// How much longer a packet is held that others are to overtake, unless told.
const REORDER_BY: Duration = Duration::from_millis(5);

/// Bytes of UDP that may pass a policer at once: a few packets at least, as those of access networks let.
const POLICER_BURST: u64 = 15_000;

/// What `meta length` may count beside the packet, in bytes.
const ETHERNET_HEADER: u32 = 14;

/// How long the emulator may take to open its devices.
const EMULATOR_WITHIN: Duration = Duration::from_secs(5);

/// One direction with the names it needs.
struct Lane {
    way: Way,
    /// Namespace of the road.
    road: &'static str,
    /// Cable by which it comes in, which is also the one back to its senders.
    from: End,
    /// Cable by which it leaves.
    to: End,
    /// Device that delays it.
    device: &'static str,
    /// Routing table of what comes in, which is also the preference of its rule.
    table: u32,
}

fn lanes(leg: &Leg, road: &Road) -> [Lane; 2] {
    let [first, second] = leg.ends;
    [
        Lane {
            way: road.way(RoadDirection::Up),
            road: leg.road,
            from: first,
            to: second,
            device: "delayup",
            table: 101,
        },
        Lane {
            way: road.way(RoadDirection::Down),
            road: leg.road,
            from: second,
            to: first,
            device: "delaydown",
            table: 102,
        },
    ]
}

/// Gives the roads their properties.
pub(crate) fn shape(
    runner: &Runner,
    lab: &mut Lab,
    emulator: &EmulatorCommand,
) -> Result<(), LabError> {
    for (number, leg) in lab.scenario.topology.legs().iter().enumerate() {
        let road = lab.scenario.road_of(number);
        let lanes = lanes(leg, &road);
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
                runner.ip("narrow the road's MTU", lane.road, &line)?;
            }
        }
        filter(runner, lab, &road, &lanes)?;
        delay(runner, lab, &lanes, emulator)?;
    }
    Ok(())
}

fn limit_rate(runner: &Runner, lane: &Lane, rate: Rate) -> Result<(), LabError> {
    let bits = rate.bits_per_second();
    let queue = lane.way.queue.unwrap_or(DEFAULT_QUEUE).bytes(rate);
    let line = format!(
        "qdisc replace dev {} root tbf rate {bits}bit burst {} limit {queue}",
        lane.to.host,
        burst(rate)
    );
    runner.tc("limit the road's rate", lane.road, &line)?;
    Ok(())
}

/// Bytes that may pass at once: enough that a timer that is late by two milliseconds does not cost rate, and at least
/// two full-size packets.
fn burst(rate: Rate) -> u64 {
    (rate.bits_per_second() / 8 / 500).max(3028)
}

/// Loss, policing, lost ICMP errors and address translation, as one nftables file.
fn filter(runner: &Runner, lab: &Lab, road: &Road, lanes: &[Lane; 2]) -> Result<(), LabError> {
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
        if let Some(rate) = lane.way.udp_rate {
            let bytes = rate.bits_per_second() / 8;
            let port = lane
                .way
                .udp_port
                .map_or_else(String::new, |port| format!("udp dport {port} "));
            let _ = writeln!(
                forward,
                "oifname \"{}\" meta l4proto udp {port}limit rate over {bytes} bytes/second burst {} bytes counter drop",
                lane.to.host,
                burst(rate).max(POLICER_BURST)
            );
        }
        if lane.way.super_packets == Some(Fate::Drop) {
            let _ = writeln!(
                forward,
                "iifname \"{}\" meta l4proto udp meta length > {} counter drop",
                lane.from.host,
                lab.scenario.links.mtu.bytes() + ETHERNET_HEADER
            );
        }
        if lane.way.icmp == Some(Fate::Drop) {
            let back = lane.from.host;
            let _ = writeln!(
                output,
                "oifname \"{back}\" icmp type {{ destination-unreachable, time-exceeded }} counter drop"
            );
        }
    }
    if road.clamp_mss {
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
    if road.nat.is_some() {
        // What passes a delay device is routed twice; only the pass nearer the second end is tracked.
        let [up, down] = lanes;
        let mut raw = String::new();
        if up.way.needs_device() {
            let _ = writeln!(raw, "iifname \"{}\" notrack", up.from.host);
        }
        if down.way.needs_device() {
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
        lanes[0].road,
        &["nft", "-f", "-"],
        Some(&text),
    )?;
    if let Some(nat) = road.nat {
        let seconds = nat.udp_timeout.duration().as_secs().to_string();
        netns::inside(&netns::path(&lab.id.namespace(lanes[0].road)), || {
            for name in [
                "nf_conntrack_udp_timeout",
                "nf_conntrack_udp_timeout_stream",
            ] {
                set_sysctl(&format!("net.netfilter.{name}"), &seconds).map_err(|why| {
                    LabError::Setting {
                        host: lanes[0].road.to_owned(),
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
    let delayed: Vec<&Lane> = lanes
        .iter()
        .filter(|lane| lane.way.needs_device())
        .collect();
    let Some(road) = delayed.first().map(|lane| lane.road) else {
        return Ok(());
    };
    if delayed.iter().any(|lane| lane.way.needs_emulator()) || !has_netem(runner, road) {
        lab.delay = DelayMeans::Emulator;
        start_emulator(runner, lab, road, &delayed, emulator)?;
    } else {
        if lab.delay == DelayMeans::None {
            lab.delay = DelayMeans::Netem;
        }
        for lane in &delayed {
            netem(runner, lane)?;
        }
    }
    for lane in &delayed {
        let step = "route the road through its delay";
        let through = format!("route add default dev {} table {}", lane.device, lane.table);
        runner.ip(step, road, &through)?;
        let rule = format!(
            "rule add pref {0} iif {1} lookup {0}",
            lane.table, lane.from.host
        );
        runner.ip(step, road, &rule)?;
    }
    Ok(())
}

/// Has the kernel netem? Found out by trying, on the road's own loopback.
fn has_netem(runner: &Runner, road: &str) -> bool {
    let step = "try netem";
    runner
        .tc(step, road, "qdisc add dev lo root netem delay 1ms")
        .is_ok()
        && runner.tc(step, road, "qdisc del dev lo root").is_ok()
}

/// A veth pair inside the road: what is sent into one end comes out of the other, later. Both ends have the same
/// hardware address and no ARP, so every packet is for the other end.
fn netem(runner: &Runner, lane: &Lane) -> Result<(), LabError> {
    let step = "delay the road with netem";
    let device = lane.device;
    let delay = lane.way.delay.map(Span::duration).unwrap_or_default();
    let back = format!("{device}-out");
    runner.ip(
        step,
        lane.road,
        &format!("link add {device} type veth peer name {back}"),
    )?;
    for interface in [device, &back] {
        runner.ip(
            step,
            lane.road,
            &format!("link set {interface} address 02:00:00:00:00:01 arp off mtu 65535 up"),
        )?;
    }
    let packets = emulator::packets_held(delay);
    let line = format!(
        "qdisc replace dev {device} root netem delay {}us limit {packets}",
        delay.as_micros()
    );
    runner.tc(step, lane.road, &line)?;
    Ok(())
}

fn start_emulator(
    runner: &Runner,
    lab: &Lab,
    road: &str,
    delayed: &[&Lane],
    emulator: &EmulatorCommand,
) -> Result<(), LabError> {
    let failed = |why: String| LabError::Emulator(why);
    let log_path = state::log_of(&lab.id, &emulator_log(road));
    let log = std::fs::File::create(&log_path).map_err(LabError::file("create", &log_path))?;
    let program = emulator.program.to_string_lossy();
    let mut line: Vec<&str> = vec![&program];
    line.extend(emulator.arguments.iter().map(String::as_str));
    let directions: Vec<String> = delayed
        .iter()
        .map(|lane| direction(lane).to_string())
        .collect();
    line.extend(directions.iter().map(String::as_str));
    let mut command = runner.in_host(road, &line);
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

/// What the emulator does with the packets of a lane.
fn direction(lane: &Lane) -> emulator::Direction {
    let way = lane.way;
    let share = |loss: Option<crate::Loss>| loss.map_or(0, crate::Loss::per_million);
    let time = |span: Option<Span>| span.map(Span::duration);
    emulator::Direction {
        name: lane.device.to_owned(),
        delay: time(way.delay).unwrap_or_default(),
        reorder: share(way.reorder),
        reorder_by: time(way.reorder_by).unwrap_or(REORDER_BY),
        duplicate: share(way.duplicate),
        duplicate_by: time(way.duplicate_by).unwrap_or_default(),
        collapse_above: way
            .collapse_above
            .or(way.collapse_udp_above)
            .map(Rate::bits_per_second),
        collapse_udp: way.collapse_udp_above.is_some(),
    }
}

/// Name of what the emulator of a road says.
pub(crate) fn emulator_log(road: &str) -> String {
    format!("emulator-{road}")
}
