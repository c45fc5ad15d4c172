//! Slowing down for heat (`/sys/devices/system/cpu/cpu*/thermal_throttle`, Intel's processors alone).

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::{Throttling, files};

/// Events since boot; `None` where the processor does not tell.
pub(crate) fn read(online: &[u32]) -> Option<Throttling> {
    let number = |core: u32, name: &str| -> Option<u64> {
        let directory = PathBuf::from(format!("/sys/devices/system/cpu/cpu{core}"));
        files::line(directory.join(name)).ok()?.parse().ok()
    };
    // Where one core does not tell, none does: a machine of 256 cores need not be asked 256 times.
    number(*online.first()?, "thermal_throttle/core_throttle_count")?;
    let mut core_events: u64 = 0;
    // Every core of a package tells the count of the package.
    let mut packages: BTreeMap<u64, u64> = BTreeMap::new();
    for core in online.iter().copied() {
        core_events = core_events
            .saturating_add(number(core, "thermal_throttle/core_throttle_count").unwrap_or(0));
        if let Some(package) = number(core, "topology/physical_package_id")
            && let Some(events) = number(core, "thermal_throttle/package_throttle_count")
        {
            packages.insert(package, events);
        }
    }
    Some(Throttling {
        core_events,
        package_events: packages.into_values().fold(0, u64::saturating_add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_core_is_no_count() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[9999]), None);
    }
}
