//! The options that say where the other end of the tunnel is.

use std::net::IpAddr;

use clap::Args;
use wirespeed_measure::{Ends, FarEnd, MeasureError, Overrides, Stop, place_said};
use wirespeed_reach::{Machine, OpenOptions, Place};
use wirespeed_settings::shell_word;
use wirespeed_words::say;

use crate::failure::Failure;

/// Where the other end is, and what is what at it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The other end")]
pub(crate) struct FarOptions {
    /// Where the other end of the tunnel is: `ssh://[user@]host[:port]`, `netns:NAME`, `here`, or
    /// `iperf3://host[:port]` when there is nothing but an iperf3 server.
    ///
    /// Over ssh the same program must be installed there; no daemon, no open port and no new trust is needed. Without
    /// this option wirespeed says what one side alone can know, and what it could not know.
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub(crate) far: Option<Place>,

    /// The wirespeed program at the other end: a name in its PATH, or a path.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "wirespeed",
        requires = "far"
    )]
    pub(crate) far_program: String,

    /// A further option for ssh, such as `-i` or `KEYFILE`; repeatable.
    #[arg(
        long,
        value_name = "OPTION",
        allow_hyphen_values = true,
        requires = "far"
    )]
    pub(crate) ssh_option: Vec<String>,

    /// Public key of the peer to look at, when the interface has several.
    #[arg(long, value_name = "KEY")]
    pub(crate) peer: Option<String>,

    /// Address of the other end outside the tunnel; the peer's endpoint by default.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) bare_address: Option<IpAddr>,

    /// Address of the other end inside the tunnel; found out from the allowed IPs by default.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) tunnel_address: Option<IpAddr>,
}

/// A place as `--far` and `--hop` take it.
pub(crate) fn place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|error| place_said(&error))
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| say!("cli-no-address"))
}

impl FarOptions {
    /// Opens both machines and finds out which peer and which addresses are meant.
    pub(crate) fn ends(&self, interface: Option<&str>, stop: &Stop) -> Result<Ends, MeasureError> {
        self.ends_or_busiest(interface, stop, false)
    }

    /// The same to watch: with `busiest`, of several peers the one that carried most stands for all.
    pub(crate) fn ends_or_busiest(
        &self,
        interface: Option<&str>,
        stop: &Stop,
        busiest: bool,
    ) -> Result<Ends, MeasureError> {
        let options = self.open_options();
        let here = Machine::open(&Place::Here, &options)?;
        let far = match &self.far {
            None => FarEnd::Nothing,
            Some(Place::Iperf3 { host, port }) => FarEnd::Iperf3 {
                host: host.clone(),
                port: *port,
            },
            Some(place) => FarEnd::Wirespeed(Machine::open(place, &options)?),
        };
        let overrides = Overrides {
            peer: self.peer.clone(),
            bare_address: self.bare_address,
            tunnel_address: self.tunnel_address,
            busiest,
        };
        Ends::discover_stoppable(here, far, interface, &overrides, stop.clone())
    }

    /// This machine, and the far one where wirespeed can run there.
    pub(crate) fn machines(&self) -> Result<Vec<Machine>, Failure> {
        let options = self.open_options();
        let mut machines = vec![Machine::open(&Place::Here, &options)?];
        match &self.far {
            None | Some(Place::Here | Place::Iperf3 { .. }) => {}
            Some(place) => machines.push(Machine::open(place, &options)?),
        }
        Ok(machines)
    }

    /// How machines are opened.
    pub(crate) fn open_options(&self) -> OpenOptions {
        OpenOptions {
            remote_program: self.far_program.clone(),
            ssh_options: self.ssh_option.clone(),
            ..OpenOptions::default()
        }
    }

    /// The options as they were typed, for the commands that the answer suggests: ` --far netns:b`.
    pub(crate) fn as_typed(&self) -> String {
        let mut typed = String::new();
        let mut put = |option: &str, value: &str| {
            typed.push(' ');
            typed.push_str(option);
            typed.push(' ');
            typed.push_str(&shell_word(value));
        };
        if let Some(far) = &self.far {
            put("--far", &far.to_string());
            if self.far_program != "wirespeed" {
                put("--far-program", &self.far_program);
            }
        }
        for option in &self.ssh_option {
            put("--ssh-option", option);
        }
        if let Some(peer) = &self.peer {
            put("--peer", peer);
        }
        if let Some(address) = self.bare_address {
            put("--bare-address", &address.to_string());
        }
        if let Some(address) = self.tunnel_address {
            put("--tunnel-address", &address.to_string());
        }
        typed
    }
}
