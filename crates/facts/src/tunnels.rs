//! The WireGuard devices of this network namespace, whoever carries them.

use std::collections::BTreeSet;

use crate::links::RawLink;
use crate::processes::{self, Descriptors};
use crate::wireguard::Device;
use crate::{
    DeviceStatistics, Implementation, Known, Scope, Tunnel, UdpSocket, device_statistics,
    sock_diag, wireguard_kernel, wireguard_uapi,
};

/// Workers whose own ports are looked at.
const MOST_WORKERS: usize = 256;

/// A device as read, or why not, and who opened its UAPI socket.
pub(crate) struct Reading {
    pub(crate) link: RawLink,
    pub(crate) carrier: Carrier,
    pub(crate) device: Result<Device, String>,
    pub(crate) statistics: Option<Known<DeviceStatistics>>,
}

/// Which way a device was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Kernel,
    Userspace { listener: Option<u32> },
}

/// Reads every device within the scope. The UAPI directory is shared by all network namespaces: a socket there
/// counts only when a `tun` link of its name exists in this one.
pub(crate) fn read(scope: &Scope, links: &[RawLink], now: f64) -> Vec<Reading> {
    links
        .iter()
        .filter(|link| {
            scope
                .interface
                .as_ref()
                .is_none_or(|name| *name == link.name)
        })
        .filter_map(|link| {
            let (carrier, device) = match link.kind.as_deref() {
                Some("wireguard") => (
                    Carrier::Kernel,
                    wireguard_kernel::read(&link.name, now).map_err(|error| error.to_string()),
                ),
                // Without the right to look, a link that was asked for by name is worth the refusal's reason.
                Some("tun")
                    if wireguard_uapi::has_socket(&link.name)
                        .unwrap_or(scope.interface.is_some()) =>
                {
                    match wireguard_uapi::read(&link.name, now) {
                        Ok(answer) => (
                            Carrier::Userspace {
                                listener: answer.listener,
                            },
                            Ok(answer.device),
                        ),
                        Err(error) => (
                            Carrier::Userspace { listener: None },
                            Err(error.to_string()),
                        ),
                    }
                }
                _ => return None,
            };
            Some(Reading {
                link: link.clone(),
                statistics: match carrier {
                    Carrier::Kernel => None,
                    Carrier::Userspace { .. } => device_statistics::read(&link.name),
                },
                carrier,
                device,
            })
        })
        .collect()
}

/// The UDP sockets of a device, their holders left open.
pub(crate) fn sockets(reading: &Reading) -> Known<Vec<UdpSocket>> {
    let port = match &reading.device {
        Ok(device) => device.listen_port,
        Err(reason) => return Known::because(reason.clone()),
    };
    let Some(port) = port else {
        return Known::because("the device listens on no port: it is down or has no private key");
    };
    let of_workers = reading
        .statistics
        .iter()
        .filter_map(Known::value)
        .flat_map(|statistics| &statistics.workers)
        .filter_map(|worker| worker.port)
        .take(MOST_WORKERS);
    let ports: BTreeSet<u16> = of_workers.chain([port]).collect();
    let mut sockets = Vec::new();
    for port in ports {
        match sock_diag::udp_sockets(port) {
            Ok(at_port) => sockets.extend(at_port),
            Err(error) => return Known::because(error.to_string()),
        }
    }
    Known::Value(sockets)
}

/// Completes the readings: processes, sockets, holders.
pub(crate) fn describe(readings: Vec<Reading>, descriptors: &Descriptors) -> Vec<Tunnel> {
    readings
        .into_iter()
        .map(|reading| tunnel(reading, descriptors))
        .collect()
}

fn tunnel(reading: Reading, descriptors: &Descriptors) -> Tunnel {
    let pid = match reading.carrier {
        Carrier::Kernel => None,
        Carrier::Userspace { listener } => descriptors.tun_holder(&reading.link.name, listener),
    };
    let mut sockets = sockets(&reading);
    if let Known::Value(sockets) = &mut sockets {
        for socket in sockets.iter_mut() {
            socket.holder = descriptors.holder(socket.inode);
        }
        // Another program may sit on the same port at another address.
        if let Some(pid) = pid {
            sockets.retain(|socket| {
                socket
                    .holder
                    .as_ref()
                    .is_none_or(|holder| holder.pid == pid)
            });
        }
    }
    let (device, peers) = match reading.device {
        Ok(mut device) => {
            let peers = std::mem::take(&mut device.peers);
            (device, Known::Value(peers))
        }
        Err(reason) => (Device::default(), Known::because(reason)),
    };
    Tunnel {
        name: reading.link.name,
        implementation: match reading.carrier {
            Carrier::Kernel => Implementation::Kernel,
            Carrier::Userspace { .. } => Implementation::Userspace {
                pid,
                program: pid.and_then(processes::program),
                cpus_allowed: pid.and_then(processes::cpus_allowed),
            },
        },
        mtu: reading.link.mtu,
        listen_port: device.listen_port,
        fwmark: device.fwmark,
        public_key: device.public_key,
        peers,
        sockets,
        statistics: reading.statistics,
    }
}
