//! Records evidence from a real tunnel as a test case of the doctor: the evidence goes to standard output, the diagnosis in
//! short to standard error.
//!
//! `ip netns exec NAME cargo run -p wirespeed-doctor --example record -- wg0 netns:FAR [--quick] [--expect BITS_PER_SECOND]`
//!
//! What no check looks at is left out, and the names of a lab become `wg0`, `wg1`, `client` and `server`, so that a case stays
//! short and says nothing of where it was recorded. `record clean < OLD > NEW` does the same to a recording.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Instant;

use wirespeed_doctor::{Evidence, Options, investigate, judge};
use wirespeed_facts::{Counters, Known};
use wirespeed_measure::{Ends, FarEnd, Overrides};
use wirespeed_reach::{Machine, OpenOptions, Operations, Place, serve};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "agent") {
        let mut operations = Operations::default();
        wirespeed_measure::register(&mut operations);
        return Ok(serve(operations, io::stdin(), io::stdout())?);
    }
    if arguments == ["clean"] {
        let evidence: Evidence = serde_json::from_reader(io::stdin())?;
        println!("{}", clean(evidence)?);
        return Ok(());
    }
    let mut options = Options::default();
    let mut names = Vec::new();
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => options.quick = true,
            "--expect" => {
                options.expect = Some(
                    words
                        .next()
                        .ok_or("--expect needs a rate in bit/s")?
                        .parse()?,
                );
            }
            _ => names.push(word),
        }
    }
    let [interface, far @ ..] = names.as_slice() else {
        return Err("record INTERFACE [netns:NAME | ssh://… | iperf3://…] [--quick] [--expect BITS_PER_SECOND]".into());
    };
    let open = OpenOptions::default();
    let here = Machine::open(&Place::Here, &open)?;
    let far = match far.first().map(|far| far.parse::<Place>()).transpose()? {
        None => FarEnd::Nothing,
        Some(Place::Iperf3 { host, port }) => FarEnd::Iperf3 { host, port },
        Some(place) => FarEnd::Wirespeed(Machine::open(&place, &open)?),
    };
    let begun = Instant::now();
    let ends = Ends::discover(here, far, Some(interface), &Overrides::default())?;
    let evidence = investigate(&ends, &options, &|what: &str, done: f64, left: f64| {
        eprintln!(
            "{:5.1} s {:3.0} % {what} (about {left:.0} s left)",
            begun.elapsed().as_secs_f64(),
            done * 100.0
        );
    })?;
    let took = begun.elapsed().as_secs_f64();
    println!("{}", clean(evidence.clone())?);
    let diagnosis = judge(&evidence);
    eprintln!("{took:.1} s: {:?}", diagnosis.verdict);
    for finding in &diagnosis.findings {
        eprintln!(
            "{:?} {} on {} ({:?}, {:.2}): {}",
            finding.severity,
            finding.code,
            finding.host,
            finding.direction,
            finding.confidence,
            finding.because
        );
        if let Some(cause) = &finding.consequence_of {
            eprintln!("    a consequence of {cause}");
        }
        for line in &finding.evidence {
            eprintln!(
                "    {} @ {}: {} -> {} {}",
                line.what, line.r#where, line.before, line.after, line.unit
            );
        }
        for remedy in &finding.remedies {
            eprintln!("    + {} {:?}", remedy.title, remedy.commands);
        }
    }
    for missing in evidence.not_measured.iter().chain(&diagnosis.not_checked) {
        eprintln!("not known: {}: {}", missing.what, missing.because);
    }
    Ok(())
}

fn clean(mut evidence: Evidence) -> Result<String, Box<dyn Error>> {
    let left_out = "left out of the recording";
    for facts in std::iter::once(&mut evidence.here).chain(evidence.far.as_mut()) {
        facts.cpu.flags.clear();
        facts.programs.clear();
        facts.counters = Counters::default();
        facts
            .links
            .iter_mut()
            .for_each(|link| link.offloads = Known::because(left_out));
        facts.cpu.model = Known::because(left_out);
    }
    let Evidence {
        comparisons,
        soaks,
        congestion_trials,
        ..
    } = &mut evidence;
    let compared = comparisons.iter_mut().flat_map(|one| &mut one.samples);
    let tried = congestion_trials
        .iter_mut()
        .flat_map(|one| &mut one.samples);
    for sample in compared.chain(tried).chain(soaks) {
        sample.intervals.clear();
        for delta in std::iter::once(&mut sample.here).chain(sample.far.as_mut()) {
            delta.protocols.retain(|name, _| {
                ["Ip.", "Ip6.", "Udp."]
                    .iter()
                    .any(|kind| name.starts_with(kind))
            });
        }
    }
    let mut text = serde_json::to_string(&evidence)?;
    let names = [
        (Some(&evidence.interface), "wg0"),
        (evidence.far_interface.as_ref(), "wg1"),
        // An address is also in the facts, where it has to stay one.
        (
            Some(&evidence.far_name).filter(|name| name.parse::<IpAddr>().is_err()),
            "server",
        ),
    ];
    for (name, then) in names
        .into_iter()
        .filter_map(|(name, then)| Some((name?, then)))
    {
        text = text.replace(name.as_str(), then);
    }
    Ok(text.replace(
        &format!(
            "\"here_name\":{}",
            serde_json::to_string(&evidence.here_name)?
        ),
        "\"here_name\":\"client\"",
    ))
}
