//! `wirespeed test`: the road against the tunnel.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use wirespeed_doctor::{End, FarKind, Verdict};
use wirespeed_measure::{
    ComparePlan, Comparison, Direction, Ends, ExchangeComparison, ExchangePlan, FarEnd,
    MeasureError, NotMeasured, Progress, Protocol, Via,
};
use wirespeed_report::{MachineRecord, Schema, TestRecord, diff};
use wirespeed_words::say;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::far::FarOptions;
use crate::whole::Part;
use crate::{files, interrupt, numbers, terminal};

/// Echo requests without load, and seconds between them.
const IDLE_REQUESTS: u32 = 10;
const IDLE_INTERVAL: f64 = 0.05;

/// Compare the tunnel with the bare road: both directions, one stream and many, in interleaved pairs.
///
/// Each comparison is a row of pairs – road, tunnel, road, tunnel – and its result the ratio of the two with a 95 %
/// interval. Nine tenths of the road or more is healthy. Nothing is changed on any machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespeed test wg0 --far ssh://root@nas
  wirespeed test wg0 --far ssh://root@nas --quick
  wirespeed test wg0 --far ssh://root@nas --streams 1 --direction upload --output today.json
  wirespeed test wg0 --far ssh://root@nas --against yesterday.json
  wirespeed test wg0 --far ssh://root@nas --connections 1000
  wirespeed test wg0 --far iperf3://nas.example.org")]
pub(crate) struct Arguments {
    /// The WireGuard interface; may be left out when there is exactly one.
    interface: Option<String>,

    /// A first look in under 30 seconds: one connection and short samples, so a wider interval.
    #[arg(long)]
    quick: bool,

    /// Parallel connections; one comparison for each number [default: 1,10; with --quick 1].
    #[arg(long, value_name = "N,N…", value_delimiter = ',', value_parser = numbers::streams)]
    streams: Vec<u32>,

    /// Many short exchanges instead, so many connections at the same time: connect, ask, be answered, close. With
    /// `--streams`, beside the comparisons of bulk loads.
    #[arg(long, value_name = "N", value_parser = numbers::connections)]
    connections: Option<u32>,

    /// Transport of the load.
    #[arg(long, value_enum, default_value_t = Transport::Tcp, requires_if("udp", "rate"))]
    protocol: Transport,

    /// Rate of the load over UDP, all streams together: 50mbit, 1.5gbit. Only with --protocol udp.
    #[arg(long, value_parser = numbers::rate)]
    rate: Option<f64>,

    /// Which way to send: upload is from here.
    #[arg(long, value_enum, default_value_t = Ways::Both)]
    direction: Ways,

    /// Compare with an earlier record (`--output`, or the output of `--json`).
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Write the record to a file, too.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    far: FarOptions,

    #[command(flatten)]
    pub(crate) show: terminal::Show,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ways {
    Both,
    Upload,
    Download,
}

impl Arguments {
    /// Is a rate given to what finds out its own?
    pub(crate) fn rate_is_vain(&self) -> bool {
        self.rate.is_some() && self.protocol == Transport::Tcp
    }
}

impl Ways {
    fn directions(self) -> &'static [Direction] {
        match self {
            Self::Both => &[Direction::Upload, Direction::Download],
            Self::Upload => &[Direction::Upload],
            Self::Download => &[Direction::Download],
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let earlier: Option<TestRecord> = arguments.against.as_deref().map(read_record).transpose()?;
    files::check(arguments.output.as_deref())?;
    arguments.show.check()?;
    let stop = interrupt::stop_soon()?;
    let bar = terminal::Bar::new();
    let ends = arguments.far.ends(arguments.interface.as_deref(), &stop)?;
    let started_at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    let mut record = measure(arguments, &ends, started_at, &bar)?;
    record.against = earlier
        .as_ref()
        .map(|earlier| diff::against(earlier, &record));
    bar.finish();
    if arguments.show.json {
        terminal::print_json(&record)?;
    } else {
        let look = terminal::look(arguments.show.details());
        let mut text = wirespeed_report::test(&record, &look);
        if let Some(against) = &record.against {
            text.push_str(&wirespeed_report::against(against, &look));
        }
        terminal::answer(&text)?;
    }
    if let Some(path) = &arguments.output {
        files::write(path, &terminal::json(&record)?)?;
    }
    arguments
        .show
        .write_html(|| wirespeed_report::html::test(&record))?;
    Ok(match record.verdict {
        Verdict::Healthy => Exit::Done,
        Verdict::Findings => Exit::Findings,
        Verdict::Unmeasured => Exit::Unmeasured,
    })
}

fn measure(
    arguments: &Arguments,
    ends: &Ends,
    started_at: f64,
    bar: &dyn Progress,
) -> Result<TestRecord, Failure> {
    ends.check_tunnel()?;
    let idle = |via| ends.idle_rtt(via, IDLE_REQUESTS, IDLE_INTERVAL).into();
    let (idle_rtt_bare, idle_rtt_tunnel) = (idle(Via::Bare), idle(Via::Tunnel));
    let mut not_measured = Vec::new();
    let plans = plans(arguments);
    let parts = plans.len() + usize::from(arguments.connections.is_some());
    let each = plans.first().map_or(0.0, expected_seconds);
    let mut comparisons: Vec<Comparison> = Vec::new();
    let mut first_failure = None;
    for (index, plan) in plans.iter().enumerate() {
        let left = plans.len() - index;
        let part = Part {
            whole: bar,
            from: index as f64 / parts as f64,
            to: (index + 1) as f64 / parts as f64,
            after: each * (left - 1) as f64,
        };
        match wirespeed_measure::compare(ends, plan, &part) {
            Ok(comparison) => comparisons.push(comparison),
            Err(MeasureError::Stopped) => return Err(Failure::interrupted()),
            Err(error) => {
                not_measured.push(NotMeasured {
                    what: in_words(plan),
                    because: error.said(),
                });
                first_failure = first_failure.or(Some(error));
            }
        }
    }
    let exchanges = match arguments.connections {
        None => None,
        Some(at_once) => match exchanged(arguments, ends, at_once, plans.len(), bar) {
            Ok(exchanges) => Some(exchanges),
            Err(MeasureError::Stopped) => return Err(Failure::interrupted()),
            Err(error) => {
                not_measured.push(NotMeasured {
                    what: say!("cli-connections", at_once = at_once),
                    because: error.said(),
                });
                first_failure = first_failure.or(Some(error));
                None
            }
        },
    };
    if comparisons.is_empty()
        && exchanges.is_none()
        && let Some(error) = first_failure
    {
        return Err(error.into());
    }
    Ok(TestRecord {
        schema: Schema::TEST,
        verdict: TestRecord::verdict_with(&comparisons, exchanges.as_ref(), &not_measured),
        started_at,
        interface: ends.interface.clone(),
        far_kind: far_kind(ends),
        machines: machines(ends),
        idle_rtt_bare,
        idle_rtt_tunnel,
        comparisons,
        exchanges,
        not_measured,
        against: None,
    })
}

fn exchanged(
    arguments: &Arguments,
    ends: &Ends,
    at_once: u32,
    parts_before: usize,
    bar: &dyn Progress,
) -> Result<ExchangeComparison, MeasureError> {
    let plan = if arguments.quick {
        ExchangePlan::quick(at_once)
    } else {
        ExchangePlan::careful(at_once)
    };
    let part = Part {
        whole: bar,
        from: parts_before as f64 / (parts_before + 1) as f64,
        to: 1.0,
        after: 0.0,
    };
    wirespeed_measure::exchanges(ends, &plan, &part)
}

fn plans(arguments: &Arguments) -> Vec<ComparePlan> {
    let mut plans = Vec::new();
    let streams: &[u32] = match (arguments.streams.as_slice(), arguments.quick) {
        ([], _) if arguments.connections.is_some() => &[],
        ([], true) => &[1],
        ([], false) => &[1, 10],
        (asked, _) => asked,
    };
    for streams in streams {
        for direction in arguments.direction.directions() {
            let plan = if arguments.quick {
                ComparePlan::quick(*direction, *streams)
            } else {
                ComparePlan::careful(*direction, *streams)
            };
            plans.push(match arguments.protocol {
                Transport::Tcp => plan,
                Transport::Udp => ComparePlan {
                    protocol: Protocol::Udp,
                    rate: arguments.rate,
                    ..plan
                },
            });
        }
    }
    plans
}

fn expected_seconds(plan: &ComparePlan) -> f64 {
    // iperf3 needs about half a second around each sample.
    f64::from(plan.pairs_min) * 2.0 * (plan.seconds + plan.warm_up + 0.5)
}

fn in_words(plan: &ComparePlan) -> String {
    say!(
        "cli-comparison",
        direction = plan.direction.word(),
        streams = plan.streams
    )
}

fn far_kind(ends: &Ends) -> FarKind {
    match ends.far {
        FarEnd::Wirespeed(_) => FarKind::Wirespeed,
        FarEnd::Iperf3 { .. } => FarKind::Iperf3,
        FarEnd::Nothing => FarKind::Nothing,
    }
}

fn machines(ends: &Ends) -> Vec<MachineRecord> {
    let mut machines = vec![MachineRecord {
        end: End::Here,
        name: ends.here.name().to_owned(),
        interface: Some(ends.interface.clone()),
        facts: ends.here_facts.clone(),
    }];
    if let Some(facts) = &ends.far_facts {
        machines.push(MachineRecord {
            end: End::Far,
            name: ends.far_name(),
            interface: ends.far_interface.clone(),
            facts: facts.clone(),
        });
    }
    machines
}

fn read_record(path: &Path) -> Result<TestRecord, Failure> {
    files::read_json(path, &say!("cli-record"), &say!("cli-record-todo"))
}
