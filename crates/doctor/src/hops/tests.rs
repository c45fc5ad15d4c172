use super::*;

fn estimate(value: f64) -> Estimate {
    Estimate {
        value,
        low: value - 0.02,
        high: value + 0.02,
    }
}

fn hop(from: &str, to: &str, bare: f64, tunnel: Option<f64>) -> HopMeasured {
    HopMeasured {
        from: from.to_owned(),
        to: to.to_owned(),
        interface: tunnel.map(|_| "wg0".to_owned()),
        rates: vec![HopRates {
            direction: Direction::Upload,
            bare: Some(bare),
            tunnel,
            ratio: tunnel.map(|tunnel| estimate(tunnel / bare)),
            rounds: vec![
                Round {
                    bare: Some(bare),
                    tunnel
                };
                5
            ],
        }],
        idle_rtt: Some(0.01),
    }
}

fn chain(hops: Vec<HopMeasured>, whole: f64) -> ChainMeasured {
    let worst = (0..hops.len())
        .min_by(|one, other| {
            let bare = |hop: usize| hops[hop].rates[0].bare.unwrap();
            bare(*one).total_cmp(&bare(*other))
        })
        .unwrap();
    let bare = hops[worst].rates[0].bare.unwrap();
    ChainMeasured {
        started_at: None,
        whole: vec![WholeRates {
            direction: Direction::Upload,
            rate: Some(whole),
            worst_hop: Some(worst),
            of_worst: Some(estimate(whole / bare)),
            rounds: vec![Some(whole); 5],
        }],
        hops,
        whole_idle_rtt: Some(0.02),
        not_measured: Vec::new(),
    }
}

#[test]
fn a_hub_in_order_is_healthy_and_its_narrowest_road_is_named() {
    let report = judge_hops(chain(
        vec![
            hop("a", "hub", 100e6, Some(96e6)),
            hop("hub", "b", 50e6, Some(48e6)),
        ],
        46e6,
    ));
    assert_eq!(report.verdict, Verdict::Healthy);
    let worst = report.worst.unwrap();
    assert_eq!((worst.hop, worst.tunnel), (1, false));
    assert!(worst.because.starts_with("no tunnel loses too much"));
}

#[test]
fn a_tunnel_whose_road_was_not_measured_is_not_said_to_carry_it() {
    let mut measured = chain(vec![hop("a", "hub", 1e9, Some(20e6))], 20e6);
    measured.whole.clear();
    let rates = &mut measured.hops[0].rates[0];
    (rates.bare, rates.ratio) = (None, None);
    for round in &mut rates.rounds {
        round.bare = None;
    }
    let report = judge_hops(measured);
    assert_eq!(report.verdict, Verdict::Unmeasured);
    let because = report.worst.unwrap().because;
    assert!(because.starts_with("the slowest is the tunnel a to hub"));
    assert!(!because.contains("no tun"), "{because}");
}

#[test]
fn rounds_that_failed_do_not_count() {
    let mut measured = chain(vec![hop("a", "b", 100e6, Some(20e6))], 20e6);
    measured.whole.clear();
    measured.hops[0].rates[0].rounds[4] = Round::default();
    assert_eq!(judge_hops(measured).verdict, Verdict::Unmeasured);
    let mut measured = chain(
        vec![
            hop("a", "hub", 100e6, Some(95e6)),
            hop("hub", "b", 100e6, Some(95e6)),
        ],
        20e6,
    );
    measured.whole[0].rounds[0] = None;
    let report = judge_hops(measured);
    assert_eq!(report.whole[0].standing, Standing::Unknown);
}

#[test]
fn a_tunnel_below_nine_tenths_of_its_road_is_the_worst_hop_though_its_road_is_the_widest() {
    let report = judge_hops(chain(
        vec![
            hop("a", "hub", 500e6, Some(100e6)),
            hop("hub", "b", 80e6, Some(78e6)),
        ],
        70e6,
    ));
    assert_eq!(report.verdict, Verdict::Findings);
    let worst = report.worst.unwrap();
    assert_eq!((worst.hop, worst.tunnel), (0, true));
    assert!(
        worst
            .because
            .starts_with("the tunnel a to hub carries 20 %")
    );
}

#[test]
fn two_hops_together_may_lose_half_and_not_more() {
    let hops = || {
        vec![
            hop("a", "hub", 100e6, Some(95e6)),
            hop("hub", "b", 100e6, Some(95e6)),
        ]
    };
    assert_eq!(judge_hops(chain(hops(), 52e6)).verdict, Verdict::Healthy);
    let report = judge_hops(chain(hops(), 45e6));
    assert_eq!(report.verdict, Verdict::Findings);
    assert_eq!(report.whole[0].standing, Standing::Below);
}

#[test]
fn a_site_to_site_chain_has_one_tunnel_and_its_rule() {
    let site = |whole| {
        judge_hops(chain(
            vec![
                hop("source", "gw1", 1e9, None),
                hop("gw1", "gw2", 100e6, Some(95e6)),
                hop("gw2", "sink", 1e9, None),
            ],
            whole,
        ))
    };
    assert_eq!(site(93e6).verdict, Verdict::Healthy);
    assert_eq!(site(70e6).verdict, Verdict::Findings);
    assert!(site(93e6).hops[0].shares.is_empty());
}

#[test]
fn the_rule_of_half_does_not_reach_beyond_three_hops() {
    let names = ["a", "b", "c", "d", "e"];
    let hops = names
        .windows(2)
        .map(|pair| hop(pair[0], pair[1], 100e6, Some(95e6)))
        .collect();
    let report = judge_hops(chain(hops, 20e6));
    assert_eq!(report.verdict, Verdict::Healthy);
    assert_eq!(report.whole[0].standing, Standing::Unknown);
    assert!(report.remarks[0].contains("4 WireGuard hops"));
}

#[test]
fn four_rounds_prove_nothing() {
    let mut measured = chain(vec![hop("a", "b", 100e6, Some(20e6))], 20e6);
    measured.hops[0].rates[0].rounds.truncate(4);
    measured.whole.clear();
    let report = judge_hops(measured);
    assert_eq!(report.verdict, Verdict::Unmeasured);
    not_said_to_carry(&report);
}

#[test]
fn what_reaches_from_slow_to_healthy_is_not_known() {
    let mut measured = chain(vec![hop("a", "b", 100e6, Some(70e6))], 70e6);
    measured.whole.clear();
    let ratio = &mut measured.hops[0].rates[0].ratio;
    *ratio = Some(Estimate {
        value: 0.63,
        low: 0.34,
        high: 0.93,
    });
    let report = judge_hops(measured);
    assert_eq!(report.verdict, Verdict::Unmeasured);
    not_said_to_carry(&report);
}

#[test]
fn what_is_rather_slow_is_not_called_good() {
    let standing = |value, low, high| {
        let mut measured = chain(vec![hop("a", "b", 100e6, Some(90e6))], 90e6);
        measured.whole.clear();
        measured.hops[0].rates[0].ratio = Some(Estimate { value, low, high });
        let report = judge_hops(measured);
        (report.hops[0].shares[0].standing, report.verdict)
    };
    let unknown = (Standing::Unknown, Verdict::Unmeasured);
    assert_eq!(standing(0.7, 0.55, 0.92), unknown);
    assert_eq!(standing(0.89, 0.87, 0.9), unknown);
    assert_eq!(
        standing(0.91, 0.86, 0.93),
        (Standing::Good, Verdict::Healthy)
    );
    assert_eq!(
        standing(0.7, 0.55, 0.89),
        (Standing::Below, Verdict::Findings)
    );
    // The rule of half, too.
    let mut measured = chain(
        vec![
            hop("a", "hub", 100e6, Some(95e6)),
            hop("hub", "b", 100e6, Some(95e6)),
        ],
        60e6,
    );
    measured.whole[0].of_worst = Some(Estimate {
        value: 0.3,
        low: 0.15,
        high: 0.52,
    });
    let report = judge_hops(measured);
    assert_eq!(report.whole[0].standing, Standing::Unknown);
    assert_eq!(report.verdict, Verdict::Unmeasured);
}

fn not_said_to_carry(report: &HopReport) {
    let because = &report.worst.as_ref().unwrap().because;
    assert!(because.starts_with("the narrowest road is"), "{because}");
    assert!(because.ends_with("could not be told"), "{because}");
}

#[test]
fn a_way_around_the_chain_is_told() {
    let mut measured = chain(
        vec![
            hop("a", "hub", 100e6, Some(95e6)),
            hop("hub", "b", 100e6, Some(95e6)),
        ],
        90e6,
    );
    measured.whole_idle_rtt = Some(0.08);
    let report = judge_hops(measured);
    assert!(report.remarks[1].contains("another way"));
}
