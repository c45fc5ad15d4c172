//! Which kernel is this, and what is known against it: the tables in `data/`.
//!
//! `uname -r` tells the release of kernel.org only where the distribution leaves it there. Debian 12 and Ubuntu count their
//! own builds instead (`6.1.0-21-amd64` was 6.1.90); then the build line or the signature tells, or nothing does. A
//! distribution may also mend or break what kernel.org did not: only a release that is told counts for sure.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde::Deserialize;
use wirespeed_facts::Host;
use wirespeed_words::message;

/// A release of kernel.org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release {
    /// `[6, 12, 74]`.
    numbers: [u32; 3],
    /// `Some(5)` of `7.1-rc5`: before 7.1.0.
    candidate: Option<u32>,
}

/// A kernel, as far as it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// The release, or the first of its series.
    release: Release,
    /// Is the last number known?
    exact: bool,
    /// Built by a distribution that takes over changes by itself.
    patched: bool,
}

/// Does a kernel have a fault?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Has {
    /// It is outside all ranges.
    No,
    /// It may be inside: it doesn't tell its last number, or its distribution changes kernels by itself.
    Perhaps,
    /// It is inside.
    Yes,
}

/// What the tunnel must be like for a fault of a kernel to matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Concerns {
    ThreadedKernel,
    TunOffload,
    UdpSegmentation,
}

/// A row of `data/kernels.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelFault {
    pub(crate) id: String,
    kernels: Vec<(String, String)>,
    pub(crate) concerns: Concerns,
    pub(crate) sources: Vec<String>,
}

/// A row of `data/drivers.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriverFault {
    id: String,
    pub(crate) driver: String,
    pub(crate) feature: String,
    kernels: Vec<(String, String)>,
    pub(crate) sources: Vec<String>,
}

#[derive(Deserialize)]
struct Table<Row> {
    fault: Vec<Row>,
}

/// Every fault of a kernel that is known.
pub(crate) fn kernel_faults() -> &'static [KernelFault] {
    static ROWS: LazyLock<Vec<KernelFault>> = LazyLock::new(|| {
        toml::from_str::<Table<KernelFault>>(include_str!("../data/kernels.toml"))
            .expect("data/kernels.toml is part of the program and tested")
            .fault
    });
    &ROWS
}

/// Every fault of a driver that is known.
pub(crate) fn driver_faults() -> &'static [DriverFault] {
    static ROWS: LazyLock<Vec<DriverFault>> = LazyLock::new(|| {
        toml::from_str::<Table<DriverFault>>(include_str!("../data/drivers.toml"))
            .expect("data/drivers.toml is part of the program and tested")
            .fault
    });
    &ROWS
}

impl KernelFault {
    /// Does the kernel of this machine have it?
    pub(crate) fn of(&self, host: &Host) -> Has {
        within(Kernel::of(host), &self.kernels)
    }

    /// What the tunnel does then.
    pub(crate) fn harm(&self) -> String {
        message(&format!("kernel-fault-harm-{}", self.id), [])
    }

    /// Which kernel has it no longer, and what to do until then.
    pub(crate) fn remedy(&self) -> String {
        message(&format!("kernel-fault-remedy-{}", self.id), [])
    }

    /// `5.15.186–5.15.200, 6.1.142–6.1.163`.
    pub(crate) fn ranges(&self) -> String {
        self.kernels
            .iter()
            .map(|(first, last)| format!("{first}–{last}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl DriverFault {
    /// What the link does then.
    pub(crate) fn harm(&self) -> String {
        message(&format!("driver-fault-harm-{}", self.id), [])
    }

    /// Does this driver on this machine have it? A row without kernels: perhaps.
    pub(crate) fn of(&self, host: &Host, driver: &str) -> Has {
        if self.driver != driver {
            Has::No
        } else if self.kernels.is_empty() {
            Has::Perhaps
        } else {
            within(Kernel::of(host), &self.kernels)
        }
    }
}

fn within(kernel: Option<Kernel>, ranges: &[(String, String)]) -> Has {
    let Some(kernel) = kernel else {
        return Has::No;
    };
    ranges
        .iter()
        .filter_map(|(first, last)| Some((Release::parse(first)?.0, Release::parse(last)?.0)))
        .map(|(first, last)| kernel.within(first, last))
        .max()
        .unwrap_or(Has::No)
}

impl Kernel {
    /// From what the machine tells; `None` when that is no version.
    pub(crate) fn of(host: &Host) -> Option<Self> {
        let (release, rest) = Release::parse(&host.kernel)?;
        // A last number of 0 with a build's number behind it is not kernel.org's: Debian 12, Ubuntu, RHEL, SUSE.
        let counted = release.numbers[2] == 0
            && release.candidate.is_none()
            && rest
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
        let same_series = |other: &Release| other.numbers[..2] == release.numbers[..2];
        // `Ubuntu 5.15.0-119.129-generic 5.15.160`
        let signed = host
            .kernel_signature
            .as_deref()
            .and_then(|line| line.split_ascii_whitespace().nth(2))
            .and_then(|version| Some(Release::parse(version)?.0))
            .filter(same_series);
        if let Some(release) = signed {
            return Some(Self {
                release,
                exact: true,
                patched: true,
            });
        }
        // `#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)`
        let built = host
            .kernel_build
            .split_once("Debian ")
            .and_then(|(_, version)| Some(Release::parse(version)?.0))
            .filter(same_series);
        if let Some(release) = built {
            return Some(Self {
                release,
                exact: true,
                patched: false,
            });
        }
        Some(Self {
            release,
            exact: !counted,
            patched: counted,
        })
    }

    /// Is it from this release on?
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> bool {
        let first = Release {
            numbers: [major, minor, 0],
            candidate: None,
        };
        self.release >= first
    }

    fn within(&self, first: Release, last: Release) -> Has {
        let latest = if self.exact {
            self.release
        } else {
            Release {
                numbers: [self.release.numbers[0], self.release.numbers[1], u32::MAX],
                candidate: None,
            }
        };
        if latest < first || self.release > last {
            Has::No
        } else if self.exact && !self.patched {
            Has::Yes
        } else {
            Has::Perhaps
        }
    }
}

impl Release {
    /// `6.12.74`, `7.1.0-rc5`, `7.1-rc5`, `6.6.87.2` at the beginning of a text, and what follows.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (major, rest) = number(text)?;
        let (minor, mut rest) = number(rest.strip_prefix('.')?)?;
        let mut patch = 0;
        if let Some((value, after)) = rest.strip_prefix('.').and_then(number) {
            patch = value;
            rest = after;
        }
        let mut candidate = None;
        if let Some((value, after)) = rest.strip_prefix("-rc").and_then(number) {
            candidate = Some(value);
            rest = after;
        }
        let release = Self {
            numbers: [major, minor, patch],
            candidate,
        };
        Some((release, rest))
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Release {
    fn cmp(&self, other: &Self) -> Ordering {
        let finality = |release: &Self| release.candidate.unwrap_or(u32::MAX);
        self.numbers
            .cmp(&other.numbers)
            .then(finality(self).cmp(&finality(other)))
    }
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, is_there};

    use super::*;

    fn host(kernel: &str) -> Host {
        Host {
            kernel: kernel.to_owned(),
            ..Host::default()
        }
    }

    fn fault(id: &str) -> &'static KernelFault {
        kernel_faults().iter().find(|fault| fault.id == id).unwrap()
    }

    fn threaded(kernel: &str) -> Has {
        fault("threaded-napi-stall").of(&host(kernel))
    }

    #[test]
    fn every_row_has_a_source_and_ranges_that_parse() {
        let ranges = kernel_faults()
            .iter()
            .map(|fault| (&fault.id, &fault.kernels, &fault.sources))
            .chain(
                driver_faults()
                    .iter()
                    .map(|fault| (&fault.id, &fault.kernels, &fault.sources)),
            );
        for (id, kernels, sources) in ranges {
            assert!(!sources.is_empty(), "{id}");
            for (first, last) in kernels {
                let ends = [first, last].map(|text| Release::parse(text).unwrap());
                assert!(
                    ends.iter().all(|(_, rest)| rest.is_empty()) && ends[0].0 <= ends[1].0,
                    "{id}: {first} {last}"
                );
            }
        }
        let mut kernels = kernel_faults().iter();
        assert!(kernels.all(|fault| !fault.kernels.is_empty()));
    }

    #[test]
    fn every_row_is_said_in_both_languages_and_nothing_else() {
        let kernels = kernel_faults().iter().flat_map(|fault| {
            ["harm", "remedy"].map(|text| format!("kernel-fault-{text}-{}", fault.id))
        });
        let drivers = driver_faults()
            .iter()
            .map(|fault| format!("driver-fault-harm-{}", fault.id));
        let keys: Vec<String> = kernels.chain(drivers).collect();
        for language in Language::ALL {
            for key in &keys {
                assert!(is_there(language, key), "{key} in {}", language.tag());
            }
            let file = format!(
                "{}/../words/locales/{}/faults.ftl",
                env!("CARGO_MANIFEST_DIR"),
                language.tag()
            );
            let text = std::fs::read_to_string(&file).unwrap();
            let there = text.lines().filter(|line| line.contains(" = "));
            assert_eq!(there.count(), keys.len(), "{file}");
        }
    }

    #[test]
    fn ranges_end_where_the_table_says() {
        for (before, first, last, after) in [
            ("5.15.185", "5.15.186", "5.15.200", "5.15.201"),
            ("6.1.141", "6.1.142", "6.1.163", "6.1.164"),
            ("6.6.93", "6.6.94", "6.6.126", "6.6.127"),
            ("6.12.33", "6.12.34", "6.12.73", "6.12.74"),
        ] {
            assert_eq!(threaded(before), Has::No, "{before}");
            assert_eq!(threaded(first), Has::Yes, "{first}");
            assert_eq!(threaded(last), Has::Yes, "{last}");
            assert_eq!(threaded(after), Has::No, "{after}");
        }
        for between in ["5.10.230", "5.16.0", "6.2.3", "6.8.12", "6.16.1", "7.1.4"] {
            assert_eq!(threaded(between), Has::No, "{between}");
        }
    }

    #[test]
    fn what_distributions_add_to_a_release_is_no_part_of_it() {
        assert_eq!(threaded("6.12.73+deb13-amd64"), Has::Yes);
        assert_eq!(threaded("6.12.74+deb13-amd64"), Has::No);
        assert_eq!(threaded("6.6.114.1-microsoft-standard-WSL2"), Has::Yes);
        assert_eq!(threaded("6.6.87.2-microsoft-standard-WSL2"), Has::No);
        assert_eq!(threaded("6.12.40-1-lts"), Has::Yes);
        assert_eq!(threaded("6.12.63-0-virt"), Has::Yes);
        assert_eq!(threaded("6.6.100-gentoo"), Has::Yes);
    }

    #[test]
    fn a_release_that_is_hidden_is_told_by_the_build_or_not_at_all() {
        assert_eq!(threaded("6.1.0-38-amd64"), Has::Perhaps);
        let debian = |build: &str| Host {
            kernel_build: format!("#1 SMP PREEMPT_DYNAMIC Debian {build} (2025-08-13)"),
            ..host("6.1.0-38-amd64")
        };
        let fault = fault("threaded-napi-stall");
        assert_eq!(fault.of(&debian("6.1.147-1")), Has::Yes);
        assert_eq!(fault.of(&debian("6.1.90-1")), Has::No);
        assert_eq!(fault.of(&debian("6.1.164-1")), Has::No);
        // Nonsense there is not believed.
        assert_eq!(fault.of(&debian("5.10.1-1")), Has::Perhaps);
        let ubuntu = |signature: &str| Host {
            kernel_signature: Some(signature.to_owned()),
            ..host("5.15.0-160-generic")
        };
        assert_eq!(
            fault.of(&ubuntu("Ubuntu 5.15.0-160.170-generic 5.15.189")),
            Has::Perhaps
        );
        assert_eq!(
            fault.of(&ubuntu("Ubuntu 5.15.0-119.129-generic 5.15.160")),
            Has::No
        );
        assert_eq!(fault.of(&ubuntu("")), Has::Perhaps);
        assert_eq!(threaded("5.14.0-427.13.1.el9_4.x86_64"), Has::No);
    }

    #[test]
    fn candidates_come_before_their_release() {
        let gso = |kernel: &str| fault("udp-gso-headers").of(&host(kernel));
        for bad in [
            "7.0.0-rc1",
            "7.0-rc3",
            "7.0.0",
            "7.0.2-6-pve",
            "7.0.5-arch1-1",
            "7.1.0-rc5",
            "7.1.4",
        ] {
            assert_eq!(gso(bad), Has::Yes, "{bad}");
        }
        for good in ["6.18.5", "6.19.12-arch1-1", "7.1.5", "7.2.0-rc1"] {
            assert_eq!(gso(good), Has::No, "{good}");
        }
        assert_eq!(gso("7.0.0-22-generic"), Has::Perhaps);
        assert!(Release::parse("7.1-rc5").unwrap().0 < Release::parse("7.1.0").unwrap().0);
    }

    #[test]
    fn trains_through_a_tun_are_refused_by_these_alone() {
        let tun = |kernel: &str| fault("tun-gso-einval").of(&host(kernel));
        for (before, first, last, after) in [
            ("5.15.164", "5.15.165", "5.15.166", "5.15.168"),
            ("6.1.102", "6.1.103", "6.1.106", "6.1.107"),
            ("6.6.43", "6.6.44", "6.6.45", "6.6.46"),
            ("6.10.2", "6.10.3", "6.10.4", "6.10.5"),
        ] {
            assert_eq!(
                [before, first, last, after].map(tun),
                [Has::No, Has::Yes, Has::Yes, Has::No],
                "{first}"
            );
        }
        assert_eq!(tun("6.6.44-3.1-lts"), Has::Yes);
        assert_eq!(tun("6.10.3-061003-generic"), Has::Yes);
    }

    #[test]
    fn drivers_are_known_by_name_and_kernel() {
        let of = |driver: &str, kernel: &str| {
            driver_faults()
                .iter()
                .map(|fault| fault.of(&host(kernel), driver))
                .max()
        };
        assert_eq!(of("vxlan", "6.8.4"), Some(Has::Yes));
        assert_eq!(of("vxlan", "6.8.5"), Some(Has::No));
        assert_eq!(of("virtio_net", "6.17.0-41-generic"), Some(Has::Perhaps));
        assert_eq!(of("ixgbe", "6.8.4"), Some(Has::No));
    }

    #[test]
    fn a_text_that_is_no_version_has_no_fault() {
        for text in ["", "linux", "6", "6.", "99999999999.1", "6.x"] {
            assert_eq!(Kernel::of(&host(text)), None, "{text:?}");
            assert_eq!(threaded(text), Has::No, "{text:?}");
        }
    }

    #[test]
    fn a_kernel_knows_what_it_is_newer_than() {
        let at_least = |text: &str| Kernel::of(&host(text)).unwrap().at_least(6, 16);
        assert!(at_least("6.16.0") && at_least("6.18.3") && at_least("7.0.0-22-generic"));
        assert!(
            !at_least("6.15.11") && !at_least("6.16.0-rc3") && !at_least("6.12.74+deb13-amd64")
        );
    }
}
