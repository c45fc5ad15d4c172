//! Does what is sent to the other end's address outside really stay outside the tunnel?
//!
//! `wg-quick` with `AllowedIPs = 0.0.0.0/0` sends everything into the tunnel, also what goes to the endpoint's own
//! address: only WireGuard's packets, known by their firewall mark, leave by the road. A load or probe "outside" would
//! run inside there, and compare the tunnel with itself. Bound to the interface of the marked route, it stays outside.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirespeed_facts::{EndpointRoute, Facts};
use wirespeed_reach::{Machine, ReachError};

use crate::operations::WAY;

/// How long a machine may take to look up a route.
const WAY_WITHIN: Duration = Duration::from_secs(10);

/// Asks for the way to an address.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WantedWay {
    pub(crate) to: IpAddr,
    /// Firewall mark; 0 = none.
    pub(crate) mark: u32,
}

/// What it takes for a packet to stay outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Nothing.
    Anyhow,
    /// Binding its socket to this interface.
    By(String),
    /// There is no way outside.
    Never,
}

/// How what `machine` sends to `to` stays outside its tunnel `interface`.
pub(crate) fn find(
    machine: &Machine,
    facts: &Facts,
    interface: &str,
    to: IpAddr,
) -> Result<Outside, ReachError> {
    let way = |mark| machine.call(WAY, &WantedWay { to, mark }, WAY_WITHIN);
    let plain: EndpointRoute = way(0)?;
    if !leaves_by(&plain, interface) {
        return Ok(Outside::Anyhow);
    }
    let mark = facts
        .tunnels
        .iter()
        .find(|tunnel| tunnel.name == interface)
        .map_or(0, |tunnel| tunnel.fwmark);
    let marked = match mark {
        0 => plain,
        mark => way(mark)?,
    };
    Ok(by(interface, &marked))
}

fn by(interface: &str, marked: &EndpointRoute) -> Outside {
    match marked.interface.value() {
        Some(other) if other != interface => Outside::By(other.clone()),
        _ => Outside::Never,
    }
}

fn leaves_by(route: &EndpointRoute, interface: &str) -> bool {
    route
        .interface
        .value()
        .is_some_and(|name| name == interface)
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;

    use super::*;

    fn route(interface: Known<String>) -> EndpointRoute {
        EndpointRoute {
            to: "192.0.2.1".parse().unwrap(),
            inside: false,
            interface,
            gateway: None,
            source: None,
            mtu: None,
            congestion_control: None,
        }
    }

    #[test]
    fn only_another_interface_leads_outside() {
        let named = |name: &str| route(Known::Value(name.to_owned()));
        assert!(leaves_by(&named("wg0"), "wg0") && !leaves_by(&named("eth0"), "wg0"));
        assert!(!leaves_by(&route(Known::because("no route")), "wg0"));
        assert_eq!(by("wg0", &named("eth0")), Outside::By("eth0".to_owned()));
        assert_eq!(by("wg0", &named("wg0")), Outside::Never);
        assert_eq!(
            by("wg0", &route(Known::because("no route"))),
            Outside::Never
        );
    }
}
