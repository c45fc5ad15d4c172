//! A page of each kind, and the charts that its record has the figures for.

use wirespeed_report::html;

use crate::{hostile, records};

pub(crate) struct Page {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> String,
    /// Charts that must be drawn, in lists that several pages have.
    drawn: &'static [&'static [Charts]],
    /// Kinds whose figures the record lacks: the page says why there is no such chart.
    pub(crate) absent: &'static [&'static str],
}

/// A kind of chart, and how many of it.
type Charts = (&'static str, usize);

/// What two compared directions and two machines give.
const COMPARED: &[Charts] = &[
    ("shares", 1),
    ("throughput", 2),
    ("window", 2),
    ("rtt", 1),
    ("heat", 2),
];

/// What two experiments and two machines give.
const TUNED: &[Charts] = &[
    ("gains", 2),
    ("throughput", 2),
    ("window", 2),
    ("rtt", 3),
    ("heat", 2),
];

/// What two machines give that were watched.
const WATCHED: &[Charts] = &[("throughput", 1), ("heat", 2), ("drops", 1)];

const FAR: &str = " --far ssh://root@nas";

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "doctor",
        make: || html::doctor(&records::a_sweep(), FAR),
        drawn: &[COMPARED, &[("sweep", 1)]],
        absent: &["drops", "gains"],
    },
    Page {
        name: "black-hole",
        make: || html::doctor(&records::case("icmp-black-hole"), FAR),
        drawn: &[COMPARED],
        absent: &["drops", "sweep", "gains"],
    },
    Page {
        name: "congestion-control",
        make: || html::doctor(&records::case("congestion-control"), FAR),
        drawn: &[COMPARED, &[("gains", 1)]],
        absent: &["drops", "sweep"],
    },
    Page {
        name: "nothing-far",
        make: || html::doctor(&records::case("unmeasured.nothing-far"), ""),
        drawn: &[&[("rtt", 1)]],
        absent: &[
            "shares",
            "throughput",
            "window",
            "heat",
            "drops",
            "sweep",
            "gains",
        ],
    },
    Page {
        name: "watched",
        make: || html::doctor(&records::watched(), FAR),
        drawn: &[WATCHED],
        absent: &[],
    },
    Page {
        name: "test",
        make: || html::test(&records::a_test()),
        drawn: &[&[
            ("shares", 1),
            ("throughput", 4),
            ("window", 4),
            ("rtt", 1),
            ("heat", 2),
        ]],
        absent: &["drops"],
    },
    Page {
        name: "hour",
        make: || html::test(&records::an_hour()),
        drawn: &[COMPARED],
        absent: &["drops"],
    },
    Page {
        name: "tune",
        make: || html::tune(&records::a_tune(), FAR),
        drawn: &[TUNED],
        absent: &["drops"],
    },
    Page {
        name: "long-tune",
        make: || html::tune(&records::a_long_tune(), FAR),
        drawn: &[&[
            ("gains", 2),
            ("throughput", 24),
            ("window", 24),
            ("rtt", 25),
            ("heat", 2),
        ]],
        absent: &["drops"],
    },
    Page {
        name: "tune-nothing",
        make: || html::tune(&records::a_tune_of_nothing(), FAR),
        drawn: &[&[("rtt", 1)]],
        absent: &["gains", "throughput", "window", "heat", "drops"],
    },
    Page {
        name: "hops",
        make: || html::hops(&records::hops()),
        drawn: &[COMPARED, &[("hops", 1)]],
        absent: &["drops", "sweep", "gains"],
    },
    Page {
        name: "hostile-doctor",
        make: || html::doctor(&hostile::doctor(), FAR),
        drawn: &[COMPARED, &[("drops", 1)]],
        absent: &["sweep", "gains"],
    },
    Page {
        name: "hostile-watched",
        make: || html::doctor(&hostile::watched(), FAR),
        drawn: &[WATCHED],
        absent: &[],
    },
    Page {
        name: "hostile-test",
        make: || html::test(&hostile::test()),
        drawn: &[COMPARED, &[("drops", 1)]],
        absent: &[],
    },
    Page {
        name: "hostile-tune",
        make: || html::tune(&hostile::tune(), hostile::NAME),
        drawn: &[TUNED, &[("drops", 1)]],
        absent: &[],
    },
    Page {
        name: "hostile-hops",
        make: || html::hops(&hostile::hops()),
        drawn: &[COMPARED, &[("hops", 1), ("drops", 1)]],
        absent: &["sweep", "gains"],
    },
];

impl Page {
    /// Is every text of its record hostile?
    pub(crate) fn is_hostile(&self) -> bool {
        self.name.starts_with("hostile-")
    }

    /// Width in pixels, dark, on paper. Names take as much room in any colour.
    pub(crate) fn views(&self) -> &'static [(u32, bool, bool)] {
        const VIEWS: [(u32, bool, bool); 4] = [
            (390, false, false),
            (1280, false, false),
            (1280, true, false),
            (794, false, true),
        ];
        if self.is_hostile() {
            &VIEWS[..2]
        } else {
            &VIEWS
        }
    }

    /// What is wrong with the charts that were found: their kinds, and whether they are drawn.
    pub(crate) fn misses(&self, found: &[(String, bool)]) -> Vec<String> {
        let count = |kind: &str, drawn: bool| {
            let same = |one: &&(String, bool)| one.0 == kind && one.1 == drawn;
            found.iter().filter(same).count()
        };
        let mut wrong = Vec::new();
        let must = self.drawn.concat();
        for (kind, wanted) in &must {
            let drawn = count(kind, true);
            if drawn != *wanted {
                wrong.push(format!("{drawn} of {wanted} charts {kind} are drawn"));
            }
        }
        for kind in self.absent {
            if count(kind, false) == 0 {
                wrong.push(format!("not a word of why there is no chart {kind}"));
            }
        }
        for (kind, drawn) in found {
            let expected = if *drawn {
                must.iter().any(|one| one.0 == kind)
            } else {
                self.absent.contains(&kind.as_str())
            };
            if !expected {
                let how = if *drawn { "drawn" } else { "absent" };
                wrong.push(format!("a chart {kind} is {how}"));
            }
        }
        wrong
    }
}

/// The charts of a page as its text has them: their kinds, and whether they are drawn.
pub(crate) fn charts(page: &str) -> Vec<(String, bool)> {
    page.split("<figure data-chart=\"")
        .skip(1)
        .map(|figure| {
            let (kind, rest) = figure.split_once('"').expect("a kind");
            let drawn = rest.trim_start().starts_with("data-drawn=\"true\"");
            (kind.to_owned(), drawn)
        })
        .collect()
}
