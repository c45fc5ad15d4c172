//! What an agent can do for a measurement, by name.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use wirespeed_facts::Scope;
use wirespeed_reach::{Call, Operations};

use crate::background::{Background, Running};
use crate::datagram_way::{Listen, Listeners};
use crate::echo::{self, EchoTrain};
use crate::echo_watch::{self, EchoWatch};
use crate::exchange_client::{self, ExchangeRun};
use crate::exchange_server::{self, ExchangeServe};
use crate::iperf3_client::{self, Iperf3Run};
use crate::iperf3_server::{self, ServerStart, Servers};
use crate::outside::WantedWay;
use crate::passive::{self, PassivePlan};
use crate::segmentation::{self, SegmentationEnd};
use crate::sequence::{self, SequenceEnd};

pub(crate) const SNAPSHOT: &str = "facts.snapshot";
pub(crate) const COUNTERS: &str = "facts.counters";
pub(crate) const WAY: &str = "facts.way";
pub(crate) const ECHO: &str = "echo.train";
pub(crate) const WATCH_START: &str = "echo.watch.start";
pub(crate) const WATCH_FINISH: &str = "echo.watch.finish";
pub(crate) const SERVER_START: &str = "iperf3.server.start";
pub(crate) const SERVER_FINISH: &str = "iperf3.server.finish";
pub(crate) const CLIENT: &str = "iperf3.client";
pub(crate) const DATAGRAMS_LISTEN: &str = "datagrams.listen";
pub(crate) const SEQUENCE_SEND: &str = "sequence.send";
pub(crate) const SEQUENCE_RECEIVE: &str = "sequence.receive";
pub(crate) const SEGMENTATION_SEND: &str = "segmentation.send";
pub(crate) const SEGMENTATION_RECEIVE: &str = "segmentation.receive";
pub(crate) const PASSIVE: &str = "passive.watch";
pub(crate) const EXCHANGE_SERVE: &str = "exchange.serve";
pub(crate) const EXCHANGE_SERVED: &str = "exchange.served";
pub(crate) const EXCHANGE_RUN: &str = "exchange.run";
pub(crate) const STOP: &str = "measure.stop";

/// Names a piece of work started earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Number {
    pub(crate) number: u64,
}

#[derive(Default)]
struct Agent {
    running: Running,
    servers: Servers,
    watches: Background<BTreeSet<u32>>,
    listeners: Listeners,
    exchanges: Background<()>,
}

impl Agent {
    /// A check for "nobody asked this call to end".
    fn keep_going<'a>(&self, call: &'a Call) -> impl Fn() -> bool + Sync + use<'a> {
        let stopped: Arc<AtomicBool> = self.running.register();
        move || !call.cancelled() && !stopped.load(Ordering::SeqCst)
    }
}

/// Adds the operations of this crate to an agent: facts, counters, echo trains and watches for them, iperf3
/// servers and clients, and a way to end them all.
pub fn register(operations: &mut Operations) {
    let agent = Arc::new(Agent::default());

    operations.add(SNAPSHOT, |scope: Scope, _: &Call| {
        Ok::<_, Infallible>(wirespeed_facts::snapshot(&scope))
    });
    operations.add(COUNTERS, |scope: Scope, _: &Call| {
        Ok::<_, Infallible>(wirespeed_facts::counters(&scope))
    });

    operations.add(WAY, |wanted: WantedWay, _: &Call| {
        Ok::<_, Infallible>(wirespeed_facts::way_to(wanted.to, wanted.mark))
    });

    let me = Arc::clone(&agent);
    operations.add(ECHO, move |train: EchoTrain, call: &Call| {
        echo::run(&train, &me.keep_going(call))
    });

    let me = Arc::clone(&agent);
    operations.add(WATCH_START, move |watch: EchoWatch, _: &Call| {
        let socket = echo_watch::open(&watch)?;
        me.watches.start(watch.token, move |finish| {
            echo_watch::run(&socket, &watch, &|| finish.load(Ordering::SeqCst))
        })
    });
    let me = Arc::clone(&agent);
    operations.add(WATCH_FINISH, move |wanted: Number, _: &Call| {
        me.watches.finish(wanted.number)
    });

    let me = Arc::clone(&agent);
    operations.add(SERVER_START, move |wanted: ServerStart, _: &Call| {
        iperf3_server::start(&me.servers, &wanted)
    });
    let me = Arc::clone(&agent);
    operations.add(SERVER_FINISH, move |wanted: Number, _: &Call| {
        me.servers.finish(wanted.number).and_then(|ended| ended)
    });

    let me = Arc::clone(&agent);
    operations.add(CLIENT, move |run: Iperf3Run, call: &Call| {
        iperf3_client::run(&run, &me.keep_going(call))
    });

    let me = Arc::clone(&agent);
    operations.add(DATAGRAMS_LISTEN, move |wanted: Listen, _: &Call| {
        me.listeners.open(&wanted)
    });
    let me = Arc::clone(&agent);
    operations.add(SEQUENCE_SEND, move |end: SequenceEnd, call: &Call| {
        sequence::send(&me.listeners, &end, &me.keep_going(call))
    });
    let me = Arc::clone(&agent);
    operations.add(SEQUENCE_RECEIVE, move |end: SequenceEnd, call: &Call| {
        sequence::receive(&me.listeners, &end, &me.keep_going(call))
    });

    let me = Arc::clone(&agent);
    operations.add(
        SEGMENTATION_SEND,
        move |end: SegmentationEnd, call: &Call| {
            segmentation::send(&me.listeners, &end, &me.keep_going(call))
        },
    );
    let me = Arc::clone(&agent);
    operations.add(
        SEGMENTATION_RECEIVE,
        move |end: SegmentationEnd, call: &Call| {
            segmentation::receive(&me.listeners, &end, &me.keep_going(call))
        },
    );
    let me = Arc::clone(&agent);
    operations.add(PASSIVE, move |plan: PassivePlan, call: &Call| {
        passive::run(&plan, &me.keep_going(call))
    });

    let me = Arc::clone(&agent);
    operations.add(EXCHANGE_SERVE, move |wanted: ExchangeServe, _: &Call| {
        exchange_server::start(&me.exchanges, &wanted)
    });
    let me = Arc::clone(&agent);
    operations.add(EXCHANGE_SERVED, move |wanted: Number, _: &Call| {
        me.exchanges.finish(wanted.number)
    });
    let me = Arc::clone(&agent);
    operations.add(EXCHANGE_RUN, move |run: ExchangeRun, call: &Call| {
        exchange_client::run(&run, &me.keep_going(call))
    });

    operations.add(STOP, move |(): (), _: &Call| {
        agent.running.stop_all();
        agent.servers.finish_all();
        agent.watches.finish_all();
        agent.listeners.close_all();
        agent.exchanges.finish_all();
        Ok::<_, Infallible>(())
    });
}
