//! Labs come up and leave nothing behind, whatever happens to their maker.

#[path = "tools/tools.rs"]
mod tools;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tools::{Cleaner, ROLE, on, options, road, skip, skipped};
use wirespeed_lab::{
    Implementation, LabError, LabId, Phase, Scenario, down, list, remove_left_behind, scenarios,
    status, up,
};

fn shipped(name: &str) -> Scenario {
    scenarios().iter().find(|s| s.name == name).unwrap().clone()
}

/// Everything on this machine that bears a lab's name.
fn left_of(id: &LabId) -> Vec<String> {
    let names = |directory: &str| -> Vec<String> {
        fs::read_dir(directory)
            .into_iter()
            .flatten()
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect()
    };
    let mut left = Vec::new();
    left.extend(
        names("/run/netns")
            .into_iter()
            .filter(|n| n.starts_with(&format!("ws-{id}-"))),
    );
    left.extend(
        names("/run/wirespeed/lab")
            .into_iter()
            .filter(|n| n.starts_with(&format!("{id}."))),
    );
    for sockets in ["/var/run/wireguard", "/run/wirespeed"] {
        left.extend(
            names(sockets)
                .into_iter()
                .filter(|n| n.starts_with(&format!("wg{id}"))),
        );
    }
    let variable = format!("WIRESPEED_LAB={id}");
    for pid in names("/proc")
        .into_iter()
        .filter(|n| n.bytes().all(|b| b.is_ascii_digit()))
    {
        if fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|e| e.split(|b| *b == 0).any(|v| v == variable.as_bytes()))
        {
            left.push(format!(
                "process {pid} {}",
                fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
            ));
        }
    }
    for tree in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"] {
        left.extend(names(tree).into_iter().filter(|n| *n == format!("ws-{id}")));
    }
    for file in names("/run/wirespeed/lab") {
        if file.starts_with("host-sysctl")
            && fs::read_to_string(format!("/run/wirespeed/lab/{file}"))
                .is_ok_and(|text| text.contains(&format!("\"{id}\"")))
        {
            left.push(format!("its share in {file}"));
        }
    }
    left
}

#[test]
fn a_lab_comes_up_and_leaves_nothing() {
    if skipped("a_lab_comes_up_and_leaves_nothing") {
        return;
    }
    for name in ["healthy", "demo"] {
        let id = LabId::random();
        let _cleaner = Cleaner(id.clone());
        let lab = up(&shipped(name), &options(&id)).unwrap();
        assert_eq!(lab.phase, Phase::Up);
        assert!(list().iter().any(|l| l.id == id && l.phase == Phase::Up));
        let now = status(&id).unwrap();
        assert!(now.hosts.iter().all(|h| h.exists));
        assert_eq!(now.notes, lab.notes);
        let [first, second] = lab.ends();
        on(
            first,
            &format!("ping -n -c 1 -W 2 {}", second.tunnel_address.unwrap()),
        );
        assert!(matches!(
            up(&shipped(name), &options(&id)),
            Err(LabError::Taken(_))
        ));
        down(&id).unwrap();
        assert_eq!(left_of(&id), Vec::<String>::new());
        down(&id).unwrap();
    }
}

#[test]
fn killed_at_any_moment_nothing_is_left() {
    if skipped("killed_at_any_moment_nothing_is_left") {
        return;
    }
    for round in 0..20_u32 {
        let id = LabId::random();
        let _cleaner = Cleaner(id.clone());
        let mut maker = start(&id, "be_the_maker");
        // Past the start of the program, then evenly over the time that `up` takes.
        thread::sleep(
            Duration::from_millis(5)
                + Duration::from_micros(u64::from(round) * 17_000 + rand::random_range(0..17_000)),
        );
        maker.kill().unwrap();
        maker.wait().unwrap();
        let phase = list()
            .into_iter()
            .find(|lab| lab.id == id)
            .map(|lab| lab.phase);
        remove_left_behind();
        if phase == Some(Phase::Up) {
            down(&id).unwrap();
        }
        assert_eq!(
            left_of(&id),
            Vec::<String>::new(),
            "killed in round {round}, {phase:?}"
        );
    }
}

fn start(id: &LabId, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", role])
        .env(ROLE, format!("maker {id}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "started by the test that kills it"]
fn be_the_maker() {
    if let Some(id) = maker_of() {
        up(&shipped("healthy-site"), &options(&id)).unwrap();
    }
}

/// The lab that this process is to make, when it is a maker.
fn maker_of() -> Option<LabId> {
    let role = std::env::var(ROLE).ok()?;
    role.strip_prefix("maker ")?.parse().ok()
}

#[test]
fn one_that_ends_with_its_maker_is_left_behind_when_that_dies() {
    if skipped("one_that_ends_with_its_maker_is_left_behind_when_that_dies") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let mut maker = start(&id, "be_the_owner");
    let is_up = || {
        list()
            .iter()
            .any(|lab| lab.id == id && lab.phase == Phase::Up)
    };
    while !is_up() {
        assert!(maker.try_wait().unwrap().is_none(), "the maker has ended");
        thread::sleep(Duration::from_millis(20));
    }
    remove_left_behind();
    assert!(is_up(), "its maker lives");
    // As another version of this program would write it.
    let file = Path::new("/run/wirespeed/lab").join(format!("{id}.json"));
    let mut lab: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    lab["scenario"]["of_another_version"] = true.into();
    fs::write(&file, lab.to_string()).unwrap();
    remove_left_behind();
    assert!(!is_up() && file.exists(), "its maker lives");
    assert!(wirespeed_lab::of_another_version().contains(&id));
    maker.kill().unwrap();
    maker.wait().unwrap();
    remove_left_behind();
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
#[ignore = "started by the test that kills it"]
fn be_the_owner() {
    if let Some(id) = maker_of() {
        let options = wirespeed_lab::UpOptions {
            with_owner: true,
            ..options(&id)
        };
        up(&shipped("healthy"), &options).unwrap();
        thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn two_labs_at_once_do_not_meet() {
    if skipped("two_labs_at_once_do_not_meet") {
        return;
    }
    let ids = [LabId::random(), LabId::random()];
    let _cleaners = ids.clone().map(Cleaner);
    let labs = thread::scope(|scope| {
        let makers = ids
            .each_ref()
            .map(|id| scope.spawn(move || up(&shipped("healthy"), &options(id)).unwrap()));
        makers.map(|maker| maker.join().unwrap())
    });
    down(&ids[0]).unwrap();
    let [first, second] = labs[1].ends();
    on(
        first,
        &format!("ping -n -c 1 -W 2 {}", second.tunnel_address.unwrap()),
    );
    assert_eq!(left_of(&ids[0]), Vec::<String>::new());
}

#[test]
fn ended_on_request_it_leaves_nothing() {
    if skipped("ended_on_request_it_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut options = options(&id);
    options.cancelled = Some(Arc::clone(&cancelled));
    options.progress = Some(Arc::new(move |step| {
        cancelled.store(step == "tunnel", Ordering::Relaxed);
    }));
    assert!(matches!(
        up(&shipped("healthy"), &options),
        Err(LabError::Cancelled)
    ));
    assert_eq!(left_of(&id), Vec::<String>::new());
}

/// Beside the folder of this test program is that of the programs, where `cargo build` puts wirespeed-device.
#[test]
fn our_own_carries_a_tunnel_and_leaves_nothing_even_when_killed() {
    let test = "our_own_carries_a_tunnel_and_leaves_nothing_even_when_killed";
    if skipped(test) {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let device = own.ancestors().nth(2).unwrap().join("wirespeed-device");
    if !device.exists() {
        return skip(
            test,
            "wirespeed-device is not built: cargo build -p wirespeed-device",
        );
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let mut options = options(&id);
    options.tunnel = Some(Implementation::Program(device.clone()));
    let lab = up(&shipped("healthy"), &options).unwrap();
    assert_eq!(lab.implementation, Some(device.display().to_string()));
    let [first, second] = lab.ends();
    on(
        first,
        &format!("ping -n -c 1 -W 2 {}", second.tunnel_address.unwrap()),
    );
    let now = status(&id).unwrap();
    assert_eq!(now.notes, lab.notes);
    let processes = &now.hosts[0].processes;
    let daemon = processes
        .iter()
        .find_map(|p| p.strip_prefix("wirespeed-device (")?.strip_suffix(')'))
        .unwrap_or_else(|| panic!("{processes:?}"));
    on(first, &format!("kill -9 {daemon}"));
    down(&id).unwrap();
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
fn a_daemon_that_ends_is_said_and_leaves_nothing() {
    if skipped("a_daemon_that_ends_is_said_and_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let mut options = options(&id);
    options.tunnel = Some(Implementation::Program("/bin/false".into()));
    let text = up(&road(""), &options).unwrap_err().to_string();
    assert!(
        text.contains("on client, /bin/false") && text.contains("ended at once"),
        "{text}"
    );
    options.tunnel = Some(Implementation::Program("/no/such/daemon".into()));
    let text = up(&road(""), &options).unwrap_err().to_string();
    assert!(
        text.contains("/no/such/daemon") && text.contains("can't be used"),
        "{text}"
    );
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
fn a_hub_joins_two_tunnels_and_leaves_nothing() {
    if skipped("a_hub_joins_two_tunnels_and_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(&shipped("healthy-hub"), &options(&id)).unwrap();
    let [client, server] = lab.ends();
    let hub = lab.hub().unwrap();
    for address in [
        hub.road_address,
        hub.tunnel_address,
        server.road_address,
        server.tunnel_address,
    ] {
        on(client, &format!("ping -n -c 1 -W 2 {}", address.unwrap()));
    }
    let links = on(hub, "ls /sys/class/net");
    for interface in hub.hub_interfaces.clone().unwrap() {
        assert!(links.contains(&interface), "{links}");
    }
    assert_eq!(status(&id).unwrap().notes, lab.notes);
    down(&id).unwrap();
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
fn a_tunnel_within_a_tunnel_leaves_nothing() {
    if skipped("a_tunnel_within_a_tunnel_leaves_nothing") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(
        &road("[tunnel]\ninside = 1420\nmtu = 1340\nidle_peers = 50\n"),
        &options(&id),
    )
    .unwrap();
    let [client, server] = lab.ends();
    on(
        client,
        &format!(
            "ping -n -c 1 -W 2 -s 1312 -M do {}",
            server.tunnel_address.unwrap()
        ),
    );
    let peers = on(
        server,
        &format!(
            "wg show {} peers",
            server.tunnel_interface.as_deref().unwrap()
        ),
    );
    assert_eq!(peers.lines().count(), 51);
    down(&id).unwrap();
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
fn an_end_goes_away_when_the_scenario_says_so() {
    if skipped("an_end_goes_away_when_the_scenario_says_so") {
        return;
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let lab = up(&road("[fault]\nvanish_after = \"500ms\"\n"), &options(&id)).unwrap();
    let [_, second] = lab.ends();
    let interface = second.tunnel_interface.as_deref().unwrap();
    let is_up = || {
        on(second, &format!("cat /sys/class/net/{interface}/flags"))
            .trim()
            .ends_with('1')
    };
    let began = std::time::Instant::now();
    while is_up() {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "it is still there"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_daemon_with_little_processor_time_leaves_nothing_even_when_killed() {
    let test = "a_daemon_with_little_processor_time_leaves_nothing_even_when_killed";
    if skipped(test) {
        return;
    }
    if !["/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/cpu"]
        .iter()
        .any(|path| fs::exists(path).unwrap_or(false))
    {
        return skip(test, "no control groups for processor time are mounted");
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let scenario =
        road("[tunnel]\nimplementation = \"wireguard-go\"\n[fault]\ndaemon_quota = 0.5\n");
    let lab = up(&scenario, &options(&id)).unwrap();
    assert!(left_of(&id).contains(&format!("ws-{id}")));
    let [first, second] = lab.ends();
    on(
        first,
        &format!("ping -n -c 1 -W 5 {}", second.tunnel_address.unwrap()),
    );
    down(&id).unwrap();
    assert_eq!(left_of(&id), Vec::<String>::new());
}

const BUDGET: &str = "/proc/sys/net/core/netdev_budget";

#[test]
fn what_was_changed_on_the_machine_is_put_back_also_for_a_maker_that_was_killed() {
    let test = "what_was_changed_on_the_machine_is_put_back_also_for_a_maker_that_was_killed";
    if skipped(test) {
        return;
    }
    let before = fs::read_to_string(BUDGET).unwrap_or_default();
    if before.trim() != "300" {
        return skip(
            test,
            "net.core.netdev_budget is not what Linux gives, or is not seen here",
        );
    }
    let id = LabId::random();
    let _cleaner = Cleaner(id.clone());
    let mut maker = start(&id, "be_the_changer");
    while !list()
        .iter()
        .any(|lab| lab.id == id && lab.phase == Phase::Up)
    {
        assert!(maker.try_wait().unwrap().is_none(), "the maker has ended");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(BUDGET).unwrap().trim(), "301");
    maker.kill().unwrap();
    maker.wait().unwrap();
    remove_left_behind();
    assert_eq!(fs::read_to_string(BUDGET).unwrap(), before);
    assert_eq!(left_of(&id), Vec::<String>::new());
}

#[test]
#[ignore = "started by the test that kills it"]
fn be_the_changer() {
    if let Some(id) = maker_of() {
        let options = wirespeed_lab::UpOptions {
            with_owner: true,
            ..options(&id)
        };
        let scenario = road("[machine.sysctls]\n\"net.core.netdev_budget\" = \"301\"\n");
        up(&scenario, &options).unwrap();
        thread::sleep(Duration::from_secs(60));
    }
}
