//! Many short exchanges between namespaces, through real agents.

#[path = "common/road.rs"]
mod road;

use std::time::{Duration, Instant};

use road::Road;
use wirespeed_measure::{ExchangePlan, FarEnd, MeasureError, Quiet, Via, exchanges};

fn few() -> ExchangePlan {
    ExchangePlan {
        wanted: 200,
        budget: Duration::from_secs(60),
        ..ExchangePlan::quick(50)
    }
}

#[test]
fn five_pairs_of_exchanges_have_their_percentiles() {
    let Some(road) = Road::make("five_pairs_of_exchanges_have_their_percentiles") else {
        return;
    };
    road.limit("50mbit");
    let ends = road.ends();
    let found = exchanges(&ends, &few(), &Quiet).unwrap();
    assert!(
        found.samples.len() >= 10 && found.bare_unknown.is_none(),
        "{found:?}"
    );
    let ways: Vec<Via> = found.samples.iter().map(|sample| sample.via).collect();
    assert_eq!(&ways[..4], [Via::Bare, Via::Tunnel, Via::Tunnel, Via::Bare]);
    for sample in &found.samples {
        assert_eq!(
            (sample.completed, sample.failed.len()),
            (200, 0),
            "{sample:?}"
        );
        let (connect, total) = (sample.connect.unwrap(), sample.total.unwrap());
        assert!(
            connect.p50 <= connect.p90 && connect.p99 <= connect.max,
            "{sample:?}"
        );
        assert!(
            total.p50 >= connect.p50 && sample.first_byte.is_some(),
            "{sample:?}"
        );
        assert!(
            sample.per_second > 10.0 && sample.far.is_some(),
            "{sample:?}"
        );
        // 200 answers of 4096 bytes and more came in here.
        assert!(sample.here.links[&road.link("a")].rx_bytes > 200 * 4096);
    }
    // The same road twice: the ratio is about one, however busy the machine is.
    let ratio = found.ratio.unwrap();
    assert!((0.3..3.0).contains(&ratio.value), "{ratio:?}");
}

#[test]
fn a_thousand_at_once_are_no_thousand_threads() {
    let Some(road) = Road::make("a_thousand_at_once_are_no_thousand_threads") else {
        return;
    };
    let ends = road.ends();
    let plan = ExchangePlan {
        pairs_min: 1,
        pairs_max: 1,
        budget: Duration::from_secs(60),
        ..ExchangePlan::quick(1000)
    };
    let found = exchanges(&ends, &plan, &Quiet).unwrap();
    for sample in &found.samples {
        assert_eq!(sample.wanted, 2000);
        // A busy machine may let some run out of time; nothing else fails.
        assert!(sample.completed > 1500, "{sample:?}");
        assert!(
            sample
                .failed
                .keys()
                .all(|why| why.contains("time") || why.contains("timed out")),
            "{sample:?}"
        );
    }
}

#[test]
fn connections_that_are_refused_are_counted_by_reason() {
    let Some(road) = Road::make("connections_that_are_refused_are_counted_by_reason") else {
        return;
    };
    // Every fifth connection through the "tunnel" is reset, and nothing passes outside.
    let rules = "table ip wall {
        chain f {
            type filter hook forward priority 0;
            ip daddr 10.91.2.1 tcp dport 5201-5401 drop
            ip daddr 10.92.2.1 tcp flags & (syn | ack) == syn numgen inc mod 5 0 reject with tcp reset
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let plan = ExchangePlan {
        pairs_min: 2,
        seconds: 3.0,
        ..few()
    };
    let begun = Instant::now();
    let found = exchanges(&ends, &plan, &Quiet).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(40));
    // Whichever comes first for the last of them.
    let why = found.bare_unknown.as_deref().unwrap();
    assert!(
        why.contains("connect: timed out")
            || why.contains("under way when the sample's time was over"),
        "{why}"
    );
    assert_eq!(found.ratio, None);
    let through = found
        .samples
        .iter()
        .filter(|sample| sample.via == Via::Tunnel);
    for sample in through {
        let refused = sample.failed["connect: connection refused"];
        assert!((30..=50).contains(&refused), "{sample:?}");
        assert_eq!(sample.completed + refused, 200, "{sample:?}");
    }
}

#[test]
fn a_tunnel_that_lets_nothing_through_is_told_in_bounded_time() {
    let Some(road) = Road::make("a_tunnel_that_lets_nothing_through_is_told_in_bounded_time")
    else {
        return;
    };
    let rules = "table ip hole {
        chain f {
            type filter hook forward priority 0;
            ip daddr 10.92.2.1 drop
        }
    }\n";
    road.filter("r", rules);
    let ends = road.ends();
    let plan = ExchangePlan {
        seconds: 2.0,
        ..few()
    };
    let begun = Instant::now();
    let found = exchanges(&ends, &plan, &Quiet).unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        found
            .remarks
            .iter()
            .any(|remark| remark.contains("no exchange was completed")),
        "{found:?}"
    );
    let tunnel: Vec<_> = found
        .samples
        .iter()
        .filter(|one| one.via == Via::Tunnel)
        .collect();
    assert_eq!(tunnel.len(), 2);
    assert!(
        tunnel
            .iter()
            .all(|one| one.completed == 0 && one.failed.values().sum::<u64>() == 200)
    );
}

#[test]
fn what_is_needed_is_said() {
    let Some(road) = Road::make("what_is_needed_is_said") else {
        return;
    };
    let alone = road.ends_with(road.machine("a"), FarEnd::Nothing);
    let error = exchanges(&alone, &few(), &Quiet).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("wirespeed has to run at the far end"),
        "{error}"
    );
    let ends = road.ends();
    let too_many = ExchangePlan {
        at_once: 1_000_000,
        ..few()
    };
    let error = exchanges(&ends, &too_many, &Quiet).unwrap_err();
    assert!(matches!(error, MeasureError::ProbeFailed { .. }), "{error}");
    let stop = ends.stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        stop.stop();
        Instant::now()
    });
    let endless = ExchangePlan {
        wanted: 1_000_000,
        ..few()
    };
    let error = exchanges(&ends, &endless, &Quiet).unwrap_err();
    assert!(matches!(error, MeasureError::Stopped), "{error}");
    assert!(stopper.join().unwrap().elapsed() < Duration::from_secs(3));
}
