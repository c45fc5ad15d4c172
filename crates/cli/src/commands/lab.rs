//! `wirespeed lab`: practice roads in network namespaces.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, Subcommand};
use wirespeed_lab::{
    Host, Implementation, Lab, LabError, LabId, LabList, LabStatus, Phase, UpOptions,
};
use wirespeed_report::{Look, Schema, Versioned, sheet};
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::{interrupt, terminal};

/// Practice roads in network namespaces: topologies, faults, and the finding each must produce.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespeed lab list
  wirespeed lab up mtu-exceeds-path
  wirespeed lab exec client -- ping -c 3 10.9.0.2
  wirespeed lab down")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a road: namespaces, cables, road, tunnel, fault.
    Up {
        /// Name of a scenario (see `lab list`) or path of a TOML file.
        scenario: String,
        /// Name of the lab: 1 to 8 lower-case letters and digits; random unless told.
        #[arg(long, value_name = "NAME", value_parser = of_lab::<LabId>)]
        name: Option<LabId>,
        /// Who carries the tunnel instead of what the scenario says: `kernel`, `wirespeed` (the program
        /// `wirespeed-device`, from beside this one or from PATH), `wireguard-go`, or the path of a program that speaks
        /// WireGuard's userspace interface.
        #[arg(long, value_name = "IMPLEMENTATION", value_parser = of_lab::<Implementation>)]
        tunnel: Option<Implementation>,
        #[command(flatten)]
        output: Output,
    },
    /// Take labs down; the only one, unless named.
    Down {
        /// Names of labs.
        #[arg(value_parser = of_lab::<LabId>)]
        labs: Vec<LabId>,
        /// Every lab on this machine.
        #[arg(long, conflicts_with = "labs")]
        all: bool,
    },
    /// The scenarios in the program, and the labs that there are.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// How a lab is: hosts, addresses, processes, and what is not as it should be.
    Status {
        /// Name of the lab; the only one, unless told.
        #[arg(value_parser = of_lab::<LabId>)]
        lab: Option<LabId>,
        #[command(flatten)]
        output: Output,
    },
    /// Run a command on a host of a lab.
    Exec {
        /// Name of the lab; the only one, unless told.
        #[arg(long, value_name = "NAME", value_parser = of_lab::<LabId>)]
        lab: Option<LabId>,
        /// The host: client, server, source, gw1, gw2, sink, hub, road or road2.
        host: String,
        /// The command and its arguments, after `--`.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Output {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// That of the answer, when the user asked for JSON.
    pub(crate) fn schema(&self) -> Option<Schema> {
        let (output, schema) = match &self.command {
            Command::Up { output, .. } => (output, Schema::LAB_UP),
            Command::List { output } => (output, Schema::LAB_LIST),
            Command::Status { output, .. } => (output, Schema::LAB_STATUS),
            Command::Down { .. } | Command::Exec { .. } => return None,
        };
        output.json.then_some(schema)
    }
}

/// A value of the command line that the lab reads, refused in the reader's language.
pub(crate) fn of_lab<T: FromStr<Err = LabError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: LabError| error.said())
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Up {
            scenario,
            name,
            tunnel,
            output,
        } => up(scenario, name.clone(), tunnel.clone(), output),
        Command::Down { labs, all } => down(labs, *all),
        Command::List { output } => list(output),
        Command::Status { lab, output } => status(lab.as_ref(), output),
        Command::Exec { lab, host, command } => exec(lab.as_ref(), host, command),
    }
}

fn up(
    scenario: &str,
    name: Option<LabId>,
    tunnel: Option<Implementation>,
    output: &Output,
) -> Result<Exit, Failure> {
    let scenario = wirespeed_lab::find(scenario)?;
    let scripted = output.json;
    let options = UpOptions {
        id: name,
        tunnel,
        cancelled: Some(interrupt::flag_when_put_back()?),
        progress: Some(Arc::new(move |step: &str| {
            if !scripted {
                terminal::mention(step);
            }
        })),
        ..UpOptions::default()
    };
    let lab = wirespeed_lab::up(&scenario, &options)?;
    if output.json {
        terminal::print_json(&Versioned::of(Schema::LAB_UP, &lab))?;
    } else {
        terminal::answer(&ready(&lab, &terminal::look(false)))?;
    }
    Ok(Exit::Done)
}

fn down(labs: &[LabId], all: bool) -> Result<Exit, Failure> {
    let mut first_failure = None;
    let left_behind = wirespeed_lab::remove_left_behind();
    let nothing_done = left_behind.is_empty();
    for (id, result) in left_behind {
        match result {
            Ok(()) => terminal::mention(&say!("cli-lab-left-behind-gone", lab = id.to_string())),
            Err(error) => first_failure = first_failure.or(Some(error)),
        }
    }
    let others = wirespeed_lab::of_another_version();
    let wanted: Vec<LabId> = match (labs, all) {
        ([], true) => wirespeed_lab::list()
            .into_iter()
            .map(|lab| lab.id)
            .chain(others.iter().cloned())
            .collect(),
        ([], false) if wirespeed_lab::list().is_empty() => Vec::new(),
        ([], false) => vec![only(None)?.id],
        (named, _) => named.to_vec(),
    };
    if wanted.is_empty() && nothing_done {
        nothing_to_take_down(&others);
    }
    for id in wanted {
        let known = if others.contains(&id) {
            Ok(())
        } else {
            wirespeed_lab::get(&id).map(drop)
        };
        // Also when nothing is known of it: something may be left of a lab whose record was lost.
        match (wirespeed_lab::down(&id), known) {
            (Ok(()), Ok(())) => terminal::mention(&say!("cli-lab-gone", lab = id.to_string())),
            (Err(error), _) | (Ok(()), Err(error)) => {
                first_failure = first_failure.or(Some(error));
            }
        }
    }
    match first_failure {
        Some(error) => Err(error.into()),
        None => Ok(Exit::Done),
    }
}

/// Says why `lab down` did nothing: no lab is an end as wanted, and one of another version goes by its name alone.
fn nothing_to_take_down(others: &[LabId]) {
    for id in others {
        let told = say!("cli-lab-goes-by-name", lab = id.to_string());
        terminal::mention(&told);
    }
    if others.is_empty() {
        terminal::mention(&say!("cli-no-lab"));
    }
}

fn list(output: &Output) -> Result<Exit, Failure> {
    let (scenarios, labs) = (wirespeed_lab::scenarios(), wirespeed_lab::list());
    if output.json {
        let list = LabList {
            scenarios: scenarios.to_vec(),
            labs,
        };
        terminal::print_json(&Versioned::of(Schema::LAB_LIST, &list))?;
        return Ok(Exit::Done);
    }
    let look = terminal::look(false);
    let widest = scenarios
        .iter()
        .map(|scenario| scenario.name.len())
        .max()
        .unwrap_or_default();
    let mut out = format!("{}\n\n", say!("cli-scenarios"));
    for scenario in scenarios {
        out.push_str(&look.entry(&scenario.name, widest, scenario.said()));
    }
    let _ = writeln!(out, "\n{}\n", say!("cli-labs"));
    for lab in &labs {
        let state = match lab.phase {
            _ if lab.left_behind() => say!("cli-lab-left-behind"),
            Phase::Up => say!("cli-lab-up"),
            Phase::Building => say!("cli-lab-building"),
        };
        out.push_str(&look.entry(
            lab.id.as_str(),
            8,
            &format!("{} ({state})", lab.scenario.name),
        ));
    }
    let others = wirespeed_lab::of_another_version();
    for id in &others {
        out.push_str(&of_another_version(id, &look));
    }
    if labs.is_empty() && others.is_empty() {
        let _ = writeln!(out, "  {}", say!("cli-no-labs"));
    }
    terminal::print(&out)?;
    Ok(Exit::Done)
}

/// A lab of which no more than the name is known: none is taken down but by its own.
fn of_another_version(id: &LabId, look: &Look) -> String {
    let said = say!("cli-lab-of-another-version", lab = id.to_string());
    look.entry(id.as_str(), 8, &said)
}

fn status(lab: Option<&LabId>, output: &Output) -> Result<Exit, Failure> {
    let status = wirespeed_lab::status(&only(lab)?.id)?;
    if output.json {
        terminal::print_json(&Versioned::of(Schema::LAB_STATUS, &status))?;
    } else {
        terminal::print(&state(&status, &terminal::look(false)))?;
    }
    Ok(Exit::Done)
}

fn exec(lab: Option<&LabId>, host: &str, command: &[String]) -> Result<Exit, Failure> {
    let lab = only(lab)?;
    match wirespeed_lab::exec(&lab, host, command)? {}
}

/// The lab that is meant: the named one, or the only one.
fn only(id: Option<&LabId>) -> Result<Lab, Failure> {
    if let Some(id) = id {
        return Ok(wirespeed_lab::get(id)?);
    }
    let mut labs = wirespeed_lab::list();
    match labs.len() {
        1 => Ok(labs.remove(0)),
        0 => Err(Failure::here(
            Exit::Usage,
            say!("cli-no-lab"),
            say!("cli-no-lab-todo"),
        )),
        _ => {
            let names: Vec<String> = labs.iter().map(|lab| lab.id.to_string()).collect();
            Err(Failure::here(
                Exit::Usage,
                say!("cli-several-labs", names = names.join(", ")),
                say!("cli-several-labs-todo"),
            ))
        }
    }
}

/// A row for each host, or a few words where there is no room for that.
fn hosts(hosts: &[Host], look: &Look) -> String {
    let rows: Vec<Vec<String>> = hosts.iter().map(host_row).collect();
    let heads = [
        say!("cli-head-host"),
        say!("cli-head-namespace"),
        say!("cli-head-road"),
        say!("cli-head-tunnel"),
        say!("cli-head-site"),
        say!("cli-head-interface"),
    ];
    let table = sheet(look, &heads, &rows);
    if look.has_room_for(&table) {
        return table;
    }
    let mut out = String::new();
    for row in &rows {
        let cells = heads.iter().zip(row).skip(1);
        let known = cells.filter(|(_, cell)| !cell.is_empty());
        let said: Vec<String> = known.map(|(head, cell)| format!("{head} {cell}")).collect();
        out.push_str(&look.entry(&row[0], 8, &said.join(", ")));
    }
    out
}

fn carrier(lab: &Lab) -> String {
    let known = lab.implementation.clone();
    known.unwrap_or_else(|| say!("cli-nobody-yet"))
}

/// A line with a label before it.
fn labelled(look: &Look, label: &str, text: &str) -> String {
    let lead = format!("  {label}  ");
    look.hanging(&lead, lead.chars().count(), text)
}

fn host_row(host: &Host) -> Vec<String> {
    let address =
        |address: Option<std::net::Ipv4Addr>| address.map_or_else(String::new, |a| a.to_string());
    vec![
        host.name.clone(),
        host.namespace.clone(),
        address(host.road_address),
        address(host.tunnel_address),
        address(host.site_address),
        host.tunnel_interface.clone().unwrap_or_default(),
    ]
}

fn ready(lab: &Lab, look: &Look) -> String {
    let [first, second] = lab.ends();
    let mut out = look.hanging(&format!("{}  ", lab.id), 0, lab.scenario.said());
    out.push('\n');
    out.push_str(&hosts(&lab.hosts, look));
    let carried = say!("cli-carried-by", carrier = carrier(lab));
    out.push_str(&labelled(look, &say!("cli-head-tunnel"), &carried));
    for note in &lab.notes {
        out.push_str(&labelled(look, &say!("cli-note"), note));
    }
    let go_on = say!("cli-go-on", finding = lab.scenario.finding.said());
    let mut doctor = vec!["doctor", "--far"];
    let far = format!("netns:{}", second.namespace);
    doctor.push(&far);
    doctor.extend(lab.scenario.doctor_args.iter().map(String::as_str));
    let doctor = doctor.join(" ");
    let me = std::env::args()
        .next()
        .unwrap_or_else(|| "wirespeed".to_owned());
    let (id, first) = (&lab.id, &first.name);
    let go_on = format!(
        "\n{go_on}\n\n  \
         {me} lab exec --lab {id} {first} -- {me} {doctor}\n  \
         {me} lab exec --lab {id} {first} -- {me} tune --far {far} --plan\n  \
         {me} lab down {id}\n"
    );
    out.push_str(&go_on);
    out
}

fn state(status: &LabStatus, look: &Look) -> String {
    let lab = &status.lab;
    let mut out = look.hanging(
        &format!("{}  ", lab.id),
        0,
        &say!(
            "cli-lab-state",
            scenario = &lab.scenario.name,
            carrier = carrier(lab)
        ),
    );
    out.push('\n');
    out.push_str(&hosts(&lab.hosts, look));
    out.push('\n');
    for host in status
        .hosts
        .iter()
        .filter(|host| !host.processes.is_empty())
    {
        out.push_str(&look.entry(&host.host.name, 8, &host.processes.join(", ")));
    }
    for note in &status.notes {
        out.push_str(&labelled(look, &say!("cli-note"), note));
    }
    out
}

/// `wirespeed lab-emulator`: the road emulator and other jobs of a lab, started by `lab up`.
pub(crate) fn emulate(arguments: &[String]) -> Result<Exit, Failure> {
    wirespeed_lab::serve(arguments).map_err(|error: LabError| Failure::from(error))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn what_takes_down_a_lab_of_another_version_names_it() {
        let id: LabId = "old1".parse().unwrap();
        for language in Language::ALL {
            let listed = within(language, || {
                of_another_version(&id, &Look::new(120, false, false))
            });
            assert!(listed.contains(" wirespeed lab down old1 "), "{listed}");
        }
    }

    #[test]
    fn the_hosts_of_a_lab_fit_any_terminal() {
        let address = Some(std::net::Ipv4Addr::new(10, 200, 100, 101));
        let all: Vec<Host> = ["client", "server"]
            .map(|name| Host {
                name: name.to_owned(),
                namespace: format!("ws-abcdefgh-{name}"),
                tunnel_interface: Some("wgabcdefgh0".to_owned()),
                hub_interfaces: None,
                road_address: address,
                tunnel_address: address,
                site_address: None,
            })
            .into();
        for language in Language::ALL {
            for width in [60, 80, 120] {
                let look = Look::new(width, false, false);
                let text = within(language, || hosts(&all, &look));
                assert!(look.has_room_for(&text), "{width}: {text}");
                for host in &all {
                    assert!(text.contains(&host.namespace), "{width}: {text}");
                }
            }
        }
    }
}
