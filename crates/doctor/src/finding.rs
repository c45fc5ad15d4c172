//! What a check hands back, and short ways to say it.

use wirespeed_facts::{Implementation, Tunnel};
use wirespeed_measure::{Direction, NotMeasured};
use wirespeed_words::{say, units};

use crate::probe::Probe;
use crate::{Change, End, Evidence, EvidenceLine, Finding, Goal, Refusal, Remedy, Severity};
use wirespeed_settings::{Setting, Value};

/// IPv4 and TCP headers with timestamps, in bytes of each packet.
const HEADERS: f64 = 52.0;

/// One cause: its stable code, its title, how to know, and how it stands to the others.
pub(crate) struct Check {
    pub(crate) code: &'static str,
    /// In the language of the moment.
    pub(crate) title: fn() -> String,
    pub(crate) run: fn(&Evidence) -> Outcome,
    /// Is that finding (the second) only what this cause, as found (the first), brings about?
    pub(crate) brings: fn(&Evidence, &Finding, &Finding) -> bool,
    /// Is our own finding (the second) only what that cause (the first) brings about? The same question from the other
    /// side, for whichever of the two is the newer.
    pub(crate) follows_from: fn(&Evidence, &Finding, &Finding) -> bool,
    /// Does this cause explain by itself that the tunnel is slow in this direction?
    pub(crate) slows: fn(&Evidence, Direction) -> bool,
    /// Which measurement would tell whether it is this cause, where the evidence so far leaves it open? Asked again
    /// after each one, so a cause may ask for one after another; the same one is never made twice.
    pub(crate) wants: fn(&Evidence, Direction) -> Option<Probe>,
}

impl Check {
    /// A cause that stands for itself.
    pub(crate) const fn new(
        code: &'static str,
        title: fn() -> String,
        run: fn(&Evidence) -> Outcome,
    ) -> Self {
        Self {
            code,
            title,
            run,
            brings: |_, _, _| false,
            follows_from: |_, _, _| false,
            slows: |_, _| false,
            wants: |_, _| None,
        }
    }
}

/// What a check found, could not know, and refuses.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) found: Vec<Found>,
    /// Found as well, but nothing that makes a load of ours slower: it explains no slow direction.
    pub(crate) of_no_load: Vec<Found>,
    /// Why something could not be known.
    pub(crate) not_known: Vec<String>,
    pub(crate) refused: Vec<Refusal>,
}

impl Outcome {
    pub(crate) fn unknown(because: impl Into<String>) -> Self {
        Self {
            not_known: vec![because.into()],
            ..Self::default()
        }
    }

    /// Where what was found belongs, by whether it can make a load of ours slower.
    pub(crate) fn list(&mut self, costs: bool) -> &mut Vec<Found> {
        if costs {
            &mut self.found
        } else {
            &mut self.of_no_load
        }
    }

    pub(crate) fn not_checked(&self, code: &str) -> Vec<NotMeasured> {
        self.not_known
            .iter()
            .map(|because| NotMeasured {
                what: code.to_owned(),
                because: because.clone(),
            })
            .collect()
    }
}

/// A finding, and how much it costs.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) severity: Severity,
    pub(crate) confidence: f64,
    /// Share of the throughput (or of what else suffers) it costs, 0 to 1: orders findings of one severity.
    pub(crate) effect: f64,
    pub(crate) host: String,
    pub(crate) direction: Option<Direction>,
    pub(crate) evidence: Vec<EvidenceLine>,
    pub(crate) because: String,
    pub(crate) remedies: Vec<Remedy>,
    pub(crate) refused: Vec<Refusal>,
}

impl Found {
    pub(crate) fn with_code(self, code: &str) -> Finding {
        Finding {
            code: code.to_owned(),
            severity: self.severity,
            confidence: self.confidence.clamp(0.0, 1.0),
            host: self.host,
            direction: self.direction,
            evidence: self.evidence,
            because: self.because,
            consequence_of: None,
            cause_index: None,
            remedies: self.remedies,
            refused: self.refused,
        }
    }
}

/// One line of evidence.
pub(crate) fn line(
    what: impl Into<String>,
    r#where: impl Into<String>,
    before: impl Into<Value>,
    after: impl Into<Value>,
    unit: &str,
) -> EvidenceLine {
    EvidenceLine {
        what: what.into(),
        r#where: r#where.into(),
        before: before.into(),
        after: after.into(),
        unit: unit.to_owned(),
    }
}

/// Bare against tunnel as a line of evidence, where both were measured.
pub(crate) fn rates_line(evidence: &Evidence, direction: Direction) -> Option<EvidenceLine> {
    let comparison = evidence.comparison(direction)?;
    let word = direction.word();
    let what = if comparison.bare.is_some() {
        say!("doctor-line-goodput", direction = word)
    } else {
        say!("doctor-line-goodput-tunnel", direction = word)
    };
    let path = crate::view::way(
        evidence.name(crate::view::sender(direction)),
        evidence.name(crate::view::receiver(direction)),
    );
    Some(line(
        what,
        path,
        comparison.bare,
        comparison.tunnel,
        "bit/s",
    ))
}

/// The same for several directions.
pub(crate) fn rates_lines(
    evidence: &Evidence,
    directions: &[Direction],
) -> impl Iterator<Item = EvidenceLine> {
    directions
        .iter()
        .filter_map(|direction| rates_line(evidence, *direction))
}

/// A shell command with the machine it is for, as one line: names from outside must not end the comment they stand in. The
/// comment is the same in every language: it is where others read the machine from.
pub(crate) fn command(evidence: &Evidence, end: End, text: impl AsRef<str>) -> String {
    format!("{}  # on {}", text.as_ref(), evidence.name(end))
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// A remedy that is no setting of the machine's, and so without commands, persistence and undo of its own.
pub(crate) fn by_hand(title: impl Into<String>, risk: impl Into<String>) -> Remedy {
    Remedy {
        title: title.into(),
        changes: Vec::new(),
        commands: Vec::new(),
        goal: Goal::Goodput,
        persistence: String::new(),
        risk: risk.into(),
        undo: String::new(),
    }
}

/// A limit on what the tunnel carries, as a remedy.
pub(crate) struct Cap<'a> {
    /// Payload it carries as measured, bit/s, and the share of that which is let through.
    pub(crate) payload: f64,
    pub(crate) share: f64,
    /// What is said of the rate, after it: nothing, or a comma and so on.
    pub(crate) remark: &'a str,
    pub(crate) goal: Goal,
    pub(crate) risk: String,
}

/// Queueing disciplines that a kernel gives a daemon's TUN by itself; any other was chosen by somebody, and may have
/// options and classes that nobody could put back.
const GIVEN: [&str; 10] = [
    "codel",
    "fq",
    "fq_codel",
    "fq_pie",
    "mq",
    "noop",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "sfq",
];

/// The kernel's own WireGuard has no queue (`IFF_NO_QUEUE`), and gets none whatever the default is.
const GIVEN_TO_THE_KERNELS: [&str; 2] = ["noop", "noqueue"];

/// Queueing disciplines that can hold all that leaves by an interface to a rate.
const LIMITING: [&str; 6] = ["cake", "cbq", "hfsc", "htb", "netem", "tbf"];

fn is_given(tunnel: &Tunnel, kind: &str) -> bool {
    match tunnel.implementation {
        Implementation::Kernel => GIVEN_TO_THE_KERNELS.contains(&kind),
        Implementation::Userspace { .. } => GIVEN.contains(&kind),
    }
}

/// Limits what leaves by the sender's tunnel interface: with the change that sets it where it can be set for this peer
/// alone, else as something to do by hand. Nothing below a tenth of a megabit.
pub(crate) fn shaper(
    evidence: &Evidence,
    direction: Direction,
    cap: Cap<'_>,
) -> (Vec<Remedy>, Vec<Refusal>) {
    let end = crate::view::sender(direction);
    let tunnel = evidence.tunnel(end);
    let mtu = tunnel
        .or_else(|| evidence.tunnel(crate::view::receiver(direction)))
        .map_or(1420, |tunnel| tunnel.mtu);
    let packet = f64::from(mtu.max(576));
    // The limit counts inner IP packets, a measurement their payload.
    let limit = (cap.payload * packet / (packet - HEADERS) * cap.share / 1e4).round() * 1e4;
    if limit < 1e5 {
        return (Vec::new(), Vec::new());
    }
    let (rate, place) = (rate(limit), evidence.interface_at(end));
    let manual = |title: String| Remedy {
        goal: cap.goal,
        ..by_hand(title, &cap.risk)
    };
    let Some(tunnel) = tunnel else {
        let remedy = manual(say!(
            "doctor-shaper-remedy-either-end",
            host = evidence.name(end),
            rate = rate,
            remark = cap.remark
        ));
        return (vec![remedy], Vec::new());
    };
    // The limit is the interface's: what is right for one peer would hold all of them.
    if tunnel.peers.value().is_none_or(|peers| peers.len() > 1) {
        let remedy = manual(say!(
            "doctor-shaper-remedy-one-peer",
            rate = rate,
            remark = cap.remark,
            place = &place
        ));
        let refusal = Refusal {
            remedy: say!("doctor-shaper-refused-all", place = &place),
            why: say!("doctor-shaper-refused-all-why"),
        };
        return (vec![remedy], vec![refusal]);
    }
    let kind = evidence
        .facts(end)
        .and_then(|facts| facts.link(&tunnel.name)?.qdisc.value());
    if let Some(kind) = kind.filter(|kind| !is_given(tunnel, kind)) {
        let title = if LIMITING.contains(&kind.as_str()) {
            say!(
                "doctor-shaper-remedy-chosen",
                place = &place,
                rate = rate,
                remark = cap.remark,
                kind = kind
            )
        } else {
            say!(
                "doctor-shaper-remedy-around",
                place = &place,
                rate = rate,
                remark = cap.remark,
                kind = kind
            )
        };
        let remedy = manual(title);
        let refusal = Refusal {
            remedy: say!("doctor-shaper-refused-chosen", place = &place),
            why: say!("doctor-shaper-refused-chosen-why", kind = kind),
        };
        return (vec![remedy], vec![refusal]);
    }
    let change = Change {
        end,
        setting: Setting::EgressShaper {
            interface: tunnel.name.clone(),
        },
        value: Value::from(limit as u64),
    };
    let remedy = remedy_of(
        evidence,
        say!(
            "doctor-shaper-remedy",
            place = &place,
            rate = rate,
            remark = cap.remark
        ),
        vec![(change, Value::Null)],
        cap.goal,
        cap.risk,
    );
    (vec![remedy], Vec::new())
}

/// A remedy made of settings, with the same as shell commands; `before` is what each had, for taking it back.
pub(crate) fn remedy_of(
    evidence: &Evidence,
    title: String,
    changes: Vec<(Change, Value)>,
    goal: Goal,
    risk: String,
) -> Remedy {
    let (commands, undo) = typed(evidence, &changes, "");
    let persistence = changes.first().map_or(String::new(), |(change, _)| {
        change.setting.persistence(&change.value)
    });
    Remedy {
        title,
        changes: changes.into_iter().map(|(change, _)| change).collect(),
        commands,
        goal,
        persistence,
        risk,
        undo,
    }
}

/// Changes and the values before as what a person types, there and back; the note stands behind each line.
pub(crate) fn typed(
    evidence: &Evidence,
    changes: &[(Change, Value)],
    note: &str,
) -> (Vec<String>, String) {
    let shell = |change: &Change, value: &Value| -> Vec<String> {
        let lines = change.setting.shell(value).into_iter();
        lines
            .map(|text| command(evidence, change.end, text + note))
            .collect()
    };
    let there = changes.iter().flat_map(|(to, _)| shell(to, &to.value));
    let back: Vec<String> = changes
        .iter()
        .flat_map(|(change, before)| shell(change, before))
        .collect();
    (there.collect(), back.join("\n"))
}

/// 0.873 → `87 %`.
pub(crate) fn percent(share: f64) -> String {
    units::fixed(share * 100.0, 0, "%")
}

/// 12 345 678 bit/s → `12.3 Mbit/s`.
pub(crate) fn rate(bits_per_second: f64) -> String {
    match bits_per_second {
        bits if bits >= 1e9 => units::fixed(bits / 1e9, 2, "Gbit/s"),
        bits if bits >= 1e6 => units::fixed(bits / 1e6, 1, "Mbit/s"),
        bits if bits >= 1e3 => units::fixed(bits / 1e3, 1, "kbit/s"),
        bits => units::fixed(bits, 0, "bit/s"),
    }
}

/// 0.1234 → `123 ms`.
pub(crate) fn milliseconds(seconds: f64) -> String {
    let milliseconds = seconds * 1e3;
    units::fixed(milliseconds, usize::from(milliseconds < 10.0), "ms")
}

#[cfg(test)]
mod tests {
    use wirespeed_facts::Known;
    use wirespeed_words::{Language, within};

    use super::*;
    use crate::testing::{facts_of, forget_far, healthy, tunnel_of};

    fn shaped(evidence: &Evidence, direction: Direction) -> (Vec<Remedy>, Vec<Refusal>) {
        let cap = Cap {
            payload: 40e6,
            share: 0.95,
            remark: "",
            goal: Goal::LoadedRtt,
            risk: "caps the peak".to_owned(),
        };
        shaper(evidence, direction, cap)
    }

    fn peers(evidence: &mut Evidence) -> &mut Vec<wirespeed_facts::Peer> {
        match &mut tunnel_of(evidence, End::Far).peers {
            Known::Value(peers) => peers,
            Known::Unknown(because) => panic!("{because}"),
        }
    }

    #[test]
    fn figures_are_written_as_the_language_writes_them() {
        let said = || [percent(0.873), rate(12_345_678.0), milliseconds(0.0034)];
        assert_eq!(said(), ["87 %", "12.3 Mbit/s", "3.4 ms"]);
        assert_eq!(
            within(Language::French, said),
            ["87\u{202f}%", "12,3\u{202f}Mbit/s", "3,4\u{202f}ms"]
        );
    }

    #[test]
    fn an_interface_with_one_peer_is_limited() {
        let (remedies, refused) = shaped(&healthy(), Direction::Download);
        assert_eq!(remedies[0].changes[0].end, End::Far);
        assert!(remedies[0].commands[0].contains("dev wg1 root"));
        assert_eq!(refused, []);
    }

    #[test]
    fn other_peers_are_not_held_to_what_one_carries() {
        let mut evidence = healthy();
        let mut other = peers(&mut evidence)[0].clone();
        other.public_key = "another-key".to_owned();
        peers(&mut evidence).push(other);
        let (remedies, refused) = shaped(&evidence, Direction::Download);
        assert_eq!(remedies.len(), 1);
        assert!(remedies[0].changes.is_empty() && remedies[0].commands.is_empty());
        assert!(remedies[0].title.contains("this peer alone"));
        assert!(refused[0].why.contains("all peers"));
        // The other end has this one alone.
        assert_eq!(shaped(&evidence, Direction::Upload).1, []);
        tunnel_of(&mut evidence, End::Far).peers = Known::because("no permission");
        assert!(
            shaped(&evidence, Direction::Download).0[0]
                .changes
                .is_empty()
        );
    }

    #[test]
    fn a_shaper_that_somebody_chose_stays() {
        let mut evidence = healthy();
        facts_of(&mut evidence, End::Far).links[0].qdisc = Known::Value("htb".to_owned());
        let (remedies, refused) = shaped(&evidence, Direction::Download);
        assert!(remedies[0].commands.is_empty() && remedies[0].title.contains("the htb"));
        assert!(refused[0].why.contains("somebody chose (htb)"));
        facts_of(&mut evidence, End::Far).links[0].qdisc = Known::Value("noqueue".to_owned());
        assert_eq!(shaped(&evidence, Direction::Download).1, []);
    }

    #[test]
    fn the_kernels_tunnel_was_given_no_queue() {
        let mut evidence = healthy();
        tunnel_of(&mut evidence, End::Far).implementation = Implementation::Kernel;
        for chosen in ["fq", "fq_codel", "pfifo_fast"] {
            facts_of(&mut evidence, End::Far).links[0].qdisc = Known::Value(chosen.to_owned());
            let (remedies, refused) = shaped(&evidence, Direction::Download);
            assert!(remedies[0].changes.is_empty() && remedies[0].commands.is_empty());
            assert!(remedies[0].title.contains(&format!("around the {chosen}")));
            assert!(refused[0].why.contains(chosen));
        }
        facts_of(&mut evidence, End::Far).links[0].qdisc = Known::Value("noqueue".to_owned());
        let (remedies, refused) = shaped(&evidence, Direction::Download);
        assert_eq!((remedies[0].changes.len(), refused), (1, Vec::new()));
    }

    #[test]
    fn an_end_that_nobody_can_reach_is_told_of_all_the_same() {
        let mut evidence = healthy();
        forget_far(&mut evidence);
        let (remedies, refused) = shaped(&evidence, Direction::Download);
        assert!(remedies[0].changes.is_empty() && refused.is_empty());
        assert!(
            remedies[0].title.contains("39.4 Mbit/s"),
            "{}",
            remedies[0].title
        );
        assert!(remedies[0].title.contains("ifb"));
        assert_eq!(remedies[0].goal, Goal::LoadedRtt);
    }
}
