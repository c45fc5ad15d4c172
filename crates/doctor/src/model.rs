//! Evidence, findings and remedies.

use serde::{Deserialize, Serialize};
use wirespeed_facts::{CountersDelta, Facts, Known};
use wirespeed_measure::{
    Comparison, Direction, Estimate, NotMeasured, PassiveWatch, PathMtu, RateSweep, RttSummary,
    Sample, SegmentationProbe, SequenceProbe, TunnelSweep,
};
use wirespeed_settings::{Setting, Value};

/// What is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FarKind {
    /// wirespeed itself: everything can be known.
    Wirespeed,
    /// Only an iperf3 server.
    Iperf3,
    /// Nothing.
    Nothing,
}

/// Everything the checks may look at. Plain data: a recorded `Evidence` is a test case of the doctor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The tunnel's interface here.
    pub interface: String,
    /// The tunnel's interface at the far end, where known.
    pub far_interface: Option<String>,
    /// Public key of the peer at the far end.
    pub peer: Option<String>,
    /// What is at the other end.
    pub far_kind: FarKind,
    /// Name shown for this machine.
    pub here_name: String,
    /// Name shown for the far machine.
    pub far_name: String,
    /// Facts here, before the load.
    pub here: Facts,
    /// Facts at the far end, before the load.
    pub far: Option<Facts>,
    /// First of all probes, while the tunnel was still idle: did the far end reach us, and did it after we had sent something?
    pub idle_return: Known<IdleReturn>,
    /// RTT outside the tunnel without load.
    pub idle_rtt_bare: Known<RttSummary>,
    /// RTT through the tunnel without load.
    pub idle_rtt_tunnel: Known<RttSummary>,
    /// Outer don't-fragment probes, one per direction that could be probed.
    pub path_mtu: Vec<PathMtu>,
    /// Size sweeps inside the tunnel.
    pub tunnel_sweep: Vec<TunnelSweep>,
    /// Bare against tunnel.
    pub comparisons: Vec<Comparison>,
    /// The same load with another congestion control, where loss made that worth a try.
    pub congestion_trials: Vec<CongestionTrial>,
    /// One longer load of several streams per direction, for queues that fill slowly; over the bare path too where the
    /// tunnel's showed something.
    #[serde(default)]
    pub soaks: Vec<Sample>,
    /// Numbered datagrams outside the tunnel (and through it, where that tells two causes apart).
    #[serde(default)]
    pub sequences: Vec<SequenceProbe>,
    /// Whether the kernel's segmentation of UDP works on the way out, where a check asked for it.
    #[serde(default)]
    pub segmentation: Vec<SegmentationProbe>,
    /// The search for the highest rate that stays stable, where it was asked for or suspected.
    #[serde(default)]
    pub sweeps: Vec<RateSweep>,
    /// What flowed by itself (`--passive`); then there are no loads and no probes.
    #[serde(default)]
    pub passive: Option<PassiveWatch>,
    /// Measurements that a check asked for, to tell its cause from another.
    #[serde(default)]
    pub asked: Vec<Asked>,
    /// Measurements that a check asked for when there was no time left for them.
    #[serde(default)]
    pub no_time: Vec<Asked>,
    /// What the user expects of the line, bit/s (`--expect`).
    pub expected_rate: Option<f64>,
    /// What was meant to be measured and was not.
    pub not_measured: Vec<NotMeasured>,
    /// What moved here from the first probe to the last, before any load.
    #[serde(default)]
    pub probing_here: Option<CountersDelta>,
    /// The same at the far end, when wirespeed runs there.
    #[serde(default)]
    pub probing_far: Option<CountersDelta>,
}

/// A measurement that a check could not tell its cause without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asked {
    /// What was to be measured (`numbered datagrams outside the tunnel, upload`).
    pub what: String,
    /// Who sends.
    pub direction: Direction,
    /// Codes of the causes in question.
    pub by: Vec<String>,
}

/// The order of events on an idle tunnel (see `nat-timeout`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleReturn {
    /// Echo replies of (sent by the far end) before anything was sent from here.
    pub far_first: (u32, u32),
    /// The same once more, until a second handshake would have got through; `None` = not tried, because there was an answer
    /// or a session that lived.
    #[serde(default)]
    pub far_again: Option<(u32, u32)>,
    /// Echo replies of (sent by us) then.
    pub here_then: (u32, u32),
    /// Echo replies of (sent by the far end) after that.
    pub far_after: (u32, u32),
    /// Our address as the far end's WireGuard sees it, when it is none of ours: a NAT is in between.
    pub translated_to: Option<String>,
    /// Bytes to and from the peer between finding out the two ends and the first of these, whoever's they are: the tunnel
    /// was not idle. Loads of the same run may be among them.
    #[serde(default)]
    pub carried_before: u64,
}

/// The sender's congestion control against another, interleaved, per socket (`TCP_CONGESTION`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CongestionTrial {
    /// Who sends.
    pub direction: Direction,
    /// What the sender uses by default.
    pub current: String,
    /// What was tried instead.
    pub tried: String,
    /// Relative gain (0.2 = 20 % more goodput).
    pub gain: Estimate,
    /// All samples, in the order taken.
    pub samples: Vec<Sample>,
}

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs something.
    Warning,
    /// The tunnel is unusable or far below what it could be.
    Critical,
}

/// One line of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvidenceLine {
    /// The counter, file or probe (`Udp RcvbufErrors`, `don't-fragment probe`).
    pub what: String,
    /// Machine (and interface, core, …) it was read on.
    pub r#where: String,
    /// Value before the load or of the reference side; `null` when there is none.
    pub before: Value,
    /// Value after the load or of the measured side.
    pub after: Value,
    /// Unit of both (`bytes`, `bit/s`, `s`, `packets`, `share`, or empty).
    pub unit: String,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable code (`mtu-exceeds-path`).
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// The machine it is about, by name.
    pub host: String,
    /// The direction it is about, when only one.
    pub direction: Option<Direction>,
    /// What it rests on.
    pub evidence: Vec<EvidenceLine>,
    /// One sentence: why this is the cause.
    pub because: String,
    /// Code of the finding that explains this one and is explained by none; then it is shown under that one only.
    pub consequence_of: Option<String>,
    /// Which of the diagnosis' findings that is, from 0: two machines may have one of the same code.
    #[serde(default)]
    pub cause_index: Option<usize>,
    /// What helps, narrowest first.
    pub remedies: Vec<Remedy>,
    /// What people try that would not help here, and why.
    pub refused: Vec<Refusal>,
}

impl Finding {
    /// Which of all findings of the diagnosis, from 0, explains this one; `None` where it stands for itself. A record of before
    /// there was a [`Finding::cause_index`] names the code alone: then it is the worst of that code.
    pub fn cause_in(&self, all: &[Finding]) -> Option<usize> {
        let code = self.consequence_of.as_ref()?;
        let explains = |index: &usize| {
            all.get(*index)
                .is_some_and(|one| &one.code == code && one.consequence_of.is_none())
        };
        self.cause_index
            .filter(explains)
            .or_else(|| (0..all.len()).find(explains))
    }
}

/// What a remedy is meant to better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// More goodput through the tunnel.
    Goodput,
    /// Lower loaded RTT, goodput held at 85 % or better.
    LoadedRtt,
}

/// Which machine a change is made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Where wirespeed was started.
    Here,
    /// The far end.
    Far,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// On which machine.
    pub end: End,
    /// Which knob.
    pub setting: Setting,
    /// To what.
    pub value: Value,
}

/// Something that helps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// One line: what it does.
    pub title: String,
    /// Changes `wirespeed tune` can try by itself; empty = by hand only.
    pub changes: Vec<Change>,
    /// The same as shell commands, each with the machine it is for (`# on gw2`).
    pub commands: Vec<String>,
    /// What it is meant to better.
    pub goal: Goal,
    /// How to keep it over a reboot.
    pub persistence: String,
    /// What can go wrong.
    pub risk: String,
    /// How to take it back.
    pub undo: String,
}

/// A folk remedy that would not help here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// What people try.
    pub remedy: String,
    /// Why it does nothing, or harm, here (with its source).
    pub why: String,
}

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Compared with the road in each direction, often and steadily enough, and nothing found.
    Healthy,
    /// See the findings.
    Findings,
    /// Nothing was found, but in some direction the tunnel could not be compared with its road, or not well enough.
    Unmeasured,
}

/// The doctor's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// The answer in one word.
    pub verdict: Verdict,
    /// Worst first; consequences carry `consequence_of` and `cause_index`.
    pub findings: Vec<Finding>,
    /// Checks that could not be made, and why.
    pub not_checked: Vec<NotMeasured>,
    /// Folk remedies that can't help on this machine, whatever was found.
    pub refused: Vec<Refusal>,
}
