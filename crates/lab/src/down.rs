//! Taking a lab down, from its identifier alone: nothing here depends on how far its maker got.

use std::fs;
use std::io::ErrorKind;

use crate::state::Life;
use crate::topology::{ALL_HOSTS, TUNNEL_INTERFACES};
use crate::{LabError, LabId, host_sysctl, netns, quota, state};

/// Takes a lab down: its processes, namespaces, sockets, files, and its share in the host's settings. Again and again is
/// as good as once; a lab that another process is just making is refused.
pub fn down(id: &LabId) -> Result<(), LabError> {
    if let Some(life) = state::life(id)
        && life.in_the_making()
    {
        return Err(LabError::Busy {
            id: id.to_string(),
            pid: life.owner.pid,
        });
    }
    remove(id)
}

/// Removes every lab whose maker died before it was ready, or that was to end with its maker. Returns which, and what went wrong with those that stay.
pub fn remove_left_behind() -> Vec<(LabId, Result<(), LabError>)> {
    let left_behind =
        |id: &LabId| state::life(id).is_none_or(Life::left_behind) && state::file_of(id).exists();
    let found: Vec<LabId> = state::identifiers()
        .into_iter()
        .filter(left_behind)
        .collect();
    state::remove_stale_drafts();
    if found.is_empty() {
        return Vec::new();
    }
    // Nobody takes an identifier anew between the look and the removal.
    let lock = state::lock();
    let removed = found.into_iter().filter(left_behind).map(|id| {
        let result = remove(&id);
        (id, result)
    });
    let removed = removed.collect();
    drop(lock);
    removed
}

fn remove(id: &LabId) -> Result<(), LabError> {
    let namespaces: Vec<String> = ALL_HOSTS.iter().map(|host| id.namespace(host)).collect();
    let find = || {
        let mut all: Vec<u32> = namespaces
            .iter()
            .flat_map(|n| netns::processes(n))
            .collect();
        all.extend(netns::started_for(id));
        all.sort_unstable();
        all.dedup();
        all
    };
    let stubborn = netns::end_processes(find);
    let mut failed: Vec<String> = stubborn
        .iter()
        .map(|pid| format!("process {pid}"))
        .collect();
    for namespace in &namespaces {
        if let Err(e) = netns::remove(namespace) {
            failed.push(e.to_string());
        }
    }
    // A daemon that was killed leaves them.
    for socket in (0..TUNNEL_INTERFACES).flat_map(|n| [id.uapi_socket(n), id.statistics_socket(n)])
    {
        if let Err(e) = fs::remove_file(&socket)
            && e.kind() != ErrorKind::NotFound
        {
            failed.push(format!("{}: {e}", socket.display()));
        }
    }
    if let Err(e) = quota::remove(id) {
        failed.push(e.to_string());
    }
    if let Err(e) = host_sysctl::release(id) {
        failed.push(e.to_string());
    }
    if failed.is_empty() {
        state::remove_files(id)
    } else {
        // The file stays, so that the next attempt finds what is left.
        Err(LabError::LeftOver {
            id: id.to_string(),
            left: failed.join("; "),
        })
    }
}
