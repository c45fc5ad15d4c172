//! The options that say where the other end of the tunnel is.

use clap::Args;
use wirespeed_reach::{OpenOptions, Place};

/// Where the other end is, and what is what at it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The other end")]
pub(crate) struct FarOptions {
    /// Where the other end of the tunnel is: `ssh://[user@]host[:port]`, `netns:NAME`, `here`, or
    /// `iperf3://host[:port]` when there is nothing but an iperf3 server.
    ///
    /// Over ssh the same program must be installed there; no daemon, no open port and no new trust is needed. Without
    /// this option wirespeed says what one side alone can know, and what it could not know.
    #[arg(long, value_name = "PLACE")]
    pub(crate) far: Option<Place>,

    /// The wirespeed program at the other end: a name in its PATH, or a path.
    #[arg(long, value_name = "PROGRAM", default_value = "wirespeed", requires = "far")]
    pub(crate) far_program: String,

    /// A further option for ssh, such as `-i` or `KEYFILE`; repeatable.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, requires = "far")]
    pub(crate) ssh_option: Vec<String>,

    /// Public key of the peer to look at, when the interface has several.
    #[arg(long, value_name = "KEY")]
    pub(crate) peer: Option<String>,

    /// Address of the other end outside the tunnel; the peer's endpoint by default.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bare_address: Option<std::net::IpAddr>,

    /// Address of the other end inside the tunnel; found out from the allowed IPs by default.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) tunnel_address: Option<std::net::IpAddr>,
}

impl FarOptions {
    /// How machines are opened.
    pub(crate) fn open_options(&self) -> OpenOptions {
        OpenOptions {
            remote_program: self.far_program.clone(),
            ssh_options: self.ssh_option.clone(),
            ..OpenOptions::default()
        }
    }
}

