//! Bringing a lab up, step by step; whatever fails takes everything down again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed_words::say;

use crate::command::Runner;
use crate::implementation::in_path;
use crate::{
    Implementation, Lab, LabError, LabId, Phase, Scenario, Topology, host_sysctl, hosts, job,
    quota, road, state, tunnel,
};

/// How long the road may take to carry its first packet, and the tunnel to shake hands. WireGuard repeats a lost
/// handshake after 5 s, and a road with loss loses one now and then.
const TRAFFIC_WITHIN: Duration = Duration::from_secs(12);

/// The programs a lab calls, and the Debian packages they are in.
const PROGRAMS: [(&str, &str); 7] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("ethtool", "ethtool"),
    ("wg", "wireguard-tools"),
    ("ping", "iputils-ping"),
    ("taskset", "util-linux"),
];

/// How to bring a lab up.
#[derive(Clone, Default)]
pub struct UpOptions {
    /// Its identifier; random unless told.
    pub id: Option<LabId>,
    /// Who carries the tunnel, instead of what the scenario says.
    pub tunnel: Option<Implementation>,
    /// How to start the road emulator.
    pub emulator: EmulatorCommand,
    /// Set by a signal handler: `up` takes everything down again and returns [`LabError::Cancelled`].
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Told what is being done, one short line per step.
    pub progress: Option<Progress>,
    /// Does the lab end with this process? Then it counts as left behind once this process has died, also when it was ready.
    pub with_owner: bool,
}

/// Is told each step as it begins.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// A command line whose program calls [`crate::serve`] with the arguments that follow.
#[derive(Debug, Clone)]
pub struct EmulatorCommand {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

impl Default for EmulatorCommand {
    /// This program's hidden command `lab-emulator`.
    fn default() -> Self {
        EmulatorCommand {
            program: std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            arguments: vec!["lab-emulator".to_owned()],
        }
    }
}

/// Builds the scenario and waits until it is as it says. What earlier runs left behind is removed first.
pub fn up(scenario: &Scenario, options: &UpOptions) -> Result<Lab, LabError> {
    check_machine()?;
    crate::remove_left_behind();
    let mut lab = reserve(scenario, options)?;
    match build(&mut lab, options) {
        Ok(()) => Ok(lab),
        Err(error) => {
            let removed = crate::down(&lab.id);
            if cancelled(options) {
                Err(LabError::Cancelled)
            } else {
                removed.and(Err(error))
            }
        }
    }
}

/// Takes an identifier: the lab's file is on disk before anything is made.
fn reserve(scenario: &Scenario, options: &UpOptions) -> Result<Lab, LabError> {
    let _lock = state::lock()?;
    let new = |id: &LabId| Lab {
        with_owner: options.with_owner,
        ..Lab::new(id, scenario)
    };
    if let Some(id) = &options.id {
        let lab = new(id);
        return lab.create().map(|()| lab);
    }
    loop {
        let lab = new(&LabId::random());
        match lab.create() {
            Err(LabError::Taken(_)) => {}
            other => return other.map(|()| lab),
        }
    }
}

fn build(lab: &mut Lab, options: &UpOptions) -> Result<(), LabError> {
    let runner = Runner::new(&lab.id);
    let step = |what: &str| {
        if let Some(progress) = &options.progress {
            progress(what);
        }
        if cancelled(options) {
            Err(LabError::Cancelled)
        } else {
            Ok(())
        }
    };
    step(&say!("lab-step-hosts"))?;
    host_sysctl::change(&lab.id, &lab.scenario.machine.sysctls)?;
    let notes = host_sysctl::allow(&lab.id, &hosts::congestion_controls(lab))?;
    lab.notes.extend(notes);
    hosts::make(&runner, lab)?;
    step(&say!("lab-step-cables"))?;
    hosts::connect(&runner, lab)?;
    step(&say!("lab-step-road"))?;
    road::shape(&runner, lab, &options.emulator)?;
    for leg in lab.scenario.topology.legs() {
        let [from, to] = leg.ends;
        let to = to.road_address.to_string();
        wait_for_traffic(&runner, lab, options, &say!("lab-the-road"), from.host, &to)?;
    }
    step(&say!("lab-step-tunnel"))?;
    tunnel::build(&runner, lab, options.tunnel.as_ref())?;
    let [first, second] = lab.scenario.topology.ends();
    step(&say!("lab-step-handshake"))?;
    let (from, to) = match (lab.scenario.topology, first.site, second.site) {
        (Topology::SiteToSite, Some(near), Some(far)) => (near.host, far.host_address),
        _ => (first.host, second.tunnel_address),
    };
    wait_for_traffic(
        &runner,
        lab,
        options,
        &say!("lab-the-tunnel"),
        from,
        &to.to_string(),
    )?;
    if lab.scenario.fault.duplicate_allowed_ips {
        step(&say!("lab-step-twice"))?;
        tunnel::steal_allowed_ips(&runner, lab)?;
    }
    if let Some(cores) = lab.scenario.fault.daemon_quota {
        step(&say!("lab-step-quota"))?;
        quota::limit(&lab.id, second.host, cores)?;
    }
    hosts::fill_connection_tables(lab)?;
    for job in job::all(lab) {
        step(&say!("lab-step-job", what = &job.what))?;
        job.start(&runner, &options.emulator)?;
    }
    if let Some(idle) = lab.scenario.fault.idle {
        step(&say!("lab-step-silence", idle = idle.to_string()))?;
        let until = Instant::now() + idle.duration();
        while Instant::now() < until {
            thread::sleep((until - Instant::now()).min(Duration::from_millis(50)));
            if cancelled(options) {
                return Err(LabError::Cancelled);
            }
        }
    }
    lab.phase = Phase::Up;
    lab.save()
}

fn cancelled(options: &UpOptions) -> bool {
    options
        .cancelled
        .as_ref()
        .is_some_and(|c| c.load(Ordering::Relaxed))
}

/// Waits until an echo comes back.
fn wait_for_traffic(
    runner: &Runner,
    lab: &Lab,
    options: &UpOptions,
    what: &str,
    from: &str,
    to: &str,
) -> Result<(), LabError> {
    let began = Instant::now();
    loop {
        match runner.exec(
            what,
            from,
            &["ping", "-n", "-q", "-c", "1", "-W", "1", to],
            None,
        ) {
            Ok(_) => return Ok(()),
            Err(_) if cancelled(options) => return Err(LabError::Cancelled),
            Err(error) if began.elapsed() > TRAFFIC_WITHIN => {
                return Err(LabError::NoTraffic {
                    id: lab.id.to_string(),
                    what: say!("lab-from-to", what = what, from = from, to = to),
                    seconds: TRAFFIC_WITHIN.as_secs(),
                    detail: error.to_string(),
                });
            }
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Root, and every program a lab calls.
fn check_machine() -> Result<(), LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    for (program, package) in PROGRAMS {
        if in_path(Path::new(program)).is_none() {
            return Err(LabError::ProgramMissing { program, package });
        }
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(LabError::NoTun);
    }
    Ok(())
}
