//! What joins a machine to the next, and how the last of a chain is reached from the first.

use std::net::IpAddr;
use std::time::Duration;

use wirespeed_facts::{EndpointRoute, Facts};
use wirespeed_reach::Machine;

use super::Hop;
use crate::ends::SNAPSHOT_WITHIN;
use crate::operations::{SNAPSHOT, WAY};
use crate::outside::WantedWay;
use crate::prefix::{contains, prefix};
use crate::{Ends, FarEnd, MeasureError, Overrides, Stop, Via, addresses, sensible};

/// How long a machine may take to look up a route.
const WAY_WITHIN: Duration = Duration::from_secs(10);

impl Hop {
    /// `interface` is the one to take; `first` is the hop whose interface whoever asks can name.
    pub(super) fn between(
        here: &Machine,
        far: &Machine,
        interface: Option<&str>,
        first: bool,
        stop: &Stop,
    ) -> Result<Self, MeasureError> {
        let found = Ends::discover_stoppable(
            here.clone(),
            FarEnd::Wirespeed(far.clone()),
            interface,
            &Overrides::default(),
            stop.clone(),
        );
        match found {
            Ok(ends) => Ok(Self {
                ends,
                tunnel: true,
                others: Vec::new(),
            }),
            // No tunnel here at all, none to that machine, or several.
            Err(
                error @ (MeasureError::NoSuchInterface { .. }
                | MeasureError::WhichInterface { .. }
                | MeasureError::NoPeers { .. }
                | MeasureError::WrongFarEnd { .. }),
            ) if interface.is_none() => {
                let facts = (facts_of(here)?, facts_of(far)?);
                let joining = addresses::joining(&facts.0, &facts.1);
                let mut names = joining.into_iter().map(|tunnel| tunnel.name.clone());
                match names.next() {
                    None => Ok(Self {
                        ends: Ends::side_by_side(here.clone(), far.clone(), facts, stop.clone())?,
                        tunnel: false,
                        others: Vec::new(),
                    }),
                    Some(_) if first => Err(error),
                    Some(busiest) => Ok(Self {
                        others: names.collect(),
                        ..Self::between(here, far, Some(&busiest), first, stop)?
                    }),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The first machine's and the second's name.
    pub fn names(&self) -> (String, String) {
        (self.ends.here.name().to_owned(), self.ends.far_name())
    }

    pub(super) fn idle_via(&self) -> Via {
        if self.tunnel { Via::Tunnel } else { Via::Bare }
    }
}

/// The first machine and the last, by the first of the last one's addresses that answers over the chain.
pub(super) fn whole_of(hops: &[Hop]) -> Result<Result<Ends, String>, MeasureError> {
    let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
        return Err(MeasureError::NothingFar);
    };
    let mut ends = Ends {
        far: last.ends.far.clone(),
        far_interface: last.ends.far_interface.clone(),
        far_facts: last.ends.far_facts.clone(),
        bare_address: None,
        here_bare_address: None,
        here_bare_device: None,
        far_bare_device: None,
        never_outside: Some("the whole chain is measured through its tunnels only".to_owned()),
        translated_to: None,
        ..first.ends.clone()
    };
    let mut tried = Vec::new();
    for address in candidates(last) {
        let way: EndpointRoute = first.ends.here.call(
            WAY,
            &WantedWay {
                to: address,
                mark: 0,
            },
            WAY_WITHIN,
        )?;
        if way.interface.value() != Some(&first.ends.interface) {
            tried.push(format!("{address} is not reached over the first hop"));
            continue;
        }
        ends.tunnel_address = Some(address);
        match ends.idle_rtt(Via::Tunnel, 4, 0.15) {
            Ok(rtt) if rtt.received > 0 => return Ok(Ok(ends)),
            Ok(_) => tried.push(format!("{address} does not answer")),
            Err(error @ MeasureError::ProbeFailed { .. }) => tried.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(Err(format!(
        "{} is not reached from {} over the chain: {}",
        last.ends.far_name(),
        first.ends.here.name(),
        if tried.is_empty() {
            "it has no address for it".to_owned()
        } else {
            tried.join(", ")
        }
    )))
}

/// The last machine's addresses but those of its bare path: the tunnel's first.
fn candidates(last: &Hop) -> Vec<IpAddr> {
    let Some(facts) = &last.ends.far_facts else {
        return Vec::new();
    };
    let mut links: Vec<_> = facts.links.iter().filter(|link| link.up).collect();
    links.sort_by_key(|link| Some(&link.name) != last.ends.far_interface.as_ref());
    links
        .into_iter()
        .flat_map(|link| &link.addresses)
        .filter_map(|text| prefix(text))
        .map(|(address, _)| address)
        .filter(|address| !address.is_loopback() && !link_local(*address))
        .filter(|address| !last.tunnel || last.ends.bare_address != Some(*address))
        .collect()
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

impl Ends {
    /// Two machines that share a network and no tunnel: only [`Via::Bare`] leads from one to the other.
    fn side_by_side(
        here: Machine,
        far: Machine,
        (here_facts, far_facts): (Facts, Facts),
        stop: Stop,
    ) -> Result<Self, MeasureError> {
        let Some((interface, address)) = shared_network(&here_facts, &far_facts) else {
            return Err(MeasureError::NotNeighbours {
                here: here.name().to_owned(),
                far: far.name().to_owned(),
            });
        };
        let back = shared_network(&far_facts, &here_facts);
        Ok(Self {
            interface,
            far_interface: back.as_ref().map(|(interface, _)| interface.clone()),
            peer: String::new(),
            bare_address: Some(address),
            tunnel_address: None,
            here_bare_address: back.map(|(_, address)| address),
            here_bare_device: None,
            far_bare_device: None,
            never_outside: None,
            here_tunnel_address: None,
            translated_to: None,
            here_facts,
            far_facts: Some(far_facts),
            far: FarEnd::Wirespeed(far),
            here,
            stop,
        })
    }
}

fn facts_of(machine: &Machine) -> Result<Facts, MeasureError> {
    let facts = machine.call(
        SNAPSHOT,
        &wirespeed_facts::Scope::default(),
        SNAPSHOT_WITHIN,
    )?;
    sensible::facts(machine.name(), facts)
}

/// The link of one machine on whose network the other has an address, and that address.
fn shared_network(one: &Facts, other: &Facts) -> Option<(String, IpAddr)> {
    let theirs: Vec<IpAddr> = other
        .links
        .iter()
        .filter(|link| link.up)
        .flat_map(|link| &link.addresses)
        .filter_map(|text| prefix(text))
        .map(|(address, _)| address)
        .filter(|address| !address.is_loopback() && !link_local(*address))
        .collect();
    let tunnels: Vec<&str> = one.tunnels.iter().map(|tunnel| &*tunnel.name).collect();
    one.links
        .iter()
        .filter(|link| link.up && link.name != "lo" && !tunnels.contains(&link.name.as_str()))
        .find_map(|link| {
            let networks: Vec<_> = link
                .addresses
                .iter()
                .filter_map(|text| prefix(text))
                .collect();
            let shared = theirs.iter().find(|address| {
                networks
                    .iter()
                    .any(|network| network.0 != **address && contains(*network, **address))
            })?;
            Some((link.name.clone(), *shared))
        })
}
