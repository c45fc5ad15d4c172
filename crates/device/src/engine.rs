//! Who does which step on which core.
//!
//! | engine | threads | for |
//! | --- | --- | --- |
//! | `inline` | each worker does all steps, with its own TUN queue and sockets | the least hand-overs: the default |
//! | `pipeline` | reader → sealers → writer, in each direction | one flow over several cores, as in the kernel and wireguard-go |
//!
//! Both call the same functions of [`steps`](crate::steps).

mod inline;
mod pipeline;
mod ready;
mod ring;

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::common::Core;
use crate::control::End;
use crate::options::EngineKind;
use crate::statistics::WorkerStatistics;

/// How many of what an engine works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) kind: EngineKind,
    pub(crate) workers: usize,
    pub(crate) pin: bool,
}

impl Plan {
    /// `workers` as wished, or half the cores: the other half is for the kernel's network stack, which works as long on each
    /// packet as we do, and for the applications at the ends.
    pub(crate) fn new(kind: EngineKind, workers: Option<usize>, pin: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            kind,
            workers: workers.unwrap_or(cores / 2).max(1),
            pin,
        }
    }

    /// Queues of the TUN that are served, each with the flows the kernel puts there.
    pub(crate) fn queues(self) -> usize {
        match self.kind {
            EngineKind::Inline => self.workers,
            EngineKind::Pipeline => 1,
        }
    }

    /// Threads that send and receive with sockets of their own.
    pub(crate) fn sockets(self) -> usize {
        self.queues()
    }

    /// Threads that have to be woken by a bell.
    pub(crate) fn bells(self) -> usize {
        match self.kind {
            EngineKind::Inline => self.workers,
            EngineKind::Pipeline => pipeline::BELLS,
        }
    }
}

/// An engine that is ready to run. All descriptors are open.
pub(crate) enum Engine {
    Inline(Vec<inline::Worker>),
    Pipeline(pipeline::Pipeline),
}

impl Engine {
    pub(crate) fn new(plan: Plan, core: &Arc<Core>) -> io::Result<Self> {
        let cores = if plan.pin {
            allowed_cores()?
        } else {
            Vec::new()
        };
        Ok(match plan.kind {
            EngineKind::Inline => Self::Inline(
                (0..plan.workers)
                    .map(|worker| inline::Worker::new(core, worker, pick(&cores, worker)))
                    .collect::<Result<_, _>>()?,
            ),
            EngineKind::Pipeline => {
                Self::Pipeline(pipeline::Pipeline::new(core, plan.workers, &cores)?)
            }
        })
    }

    /// The counters of its threads.
    pub(crate) fn statistics(&self) -> Vec<Arc<WorkerStatistics>> {
        match self {
            Self::Inline(workers) => workers.iter().map(inline::Worker::statistics).collect(),
            Self::Pipeline(pipeline) => pipeline.statistics(),
        }
    }

    /// Starts the threads. They end when the core says so.
    pub(crate) fn spawn(
        self,
        core: &Arc<Core>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<()> {
        match self {
            Self::Inline(workers) => {
                for worker in workers {
                    threads.push(spawn(core, &worker.statistics(), move || worker.run())?);
                }
                Ok(())
            }
            Self::Pipeline(pipeline) => pipeline.spawn(threads),
        }
    }
}

/// Starts a thread under the name of its counters, on its core if it has one. Should it panic the device ends: traffic
/// that stops without a word is worse.
pub(crate) fn spawn(
    core: &Arc<Core>,
    statistics: &Arc<WorkerStatistics>,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let thread = Arc::clone(statistics);
    let panicked = EndsOnPanic(Arc::clone(core));
    std::thread::Builder::new()
        .name(statistics.name().to_owned())
        .spawn(move || {
            let _panicked = panicked;
            thread.is_this_thread();
            if let Some(core) = thread.core() {
                let mut only = CpuSet::new();
                only.set(core);
                if let Err(error) = sched_setaffinity(None, &only) {
                    log::warn!("{} isn't bound to core {core}: {error}", thread.name());
                }
            }
            work();
        })
}

struct EndsOnPanic(Arc<Core>);

impl Drop for EndsOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("?");
            self.0
                .end_because(End::Failed(format!("thread {name} panicked")));
        }
    }
}

/// The cores we may run on.
fn allowed_cores() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect())
}

fn pick(cores: &[usize], worker: usize) -> Option<usize> {
    cores.get(worker % cores.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_worker() {
        let workers = |wish| Plan::new(EngineKind::Inline, wish, false).workers;
        assert!(workers(None) >= 1);
        assert_eq!(workers(Some(3)), 3);
        assert_eq!(Plan::new(EngineKind::Pipeline, Some(3), false).queues(), 1);
    }

    #[test]
    fn workers_are_dealt_to_the_allowed_cores() {
        assert_eq!(pick(&[], 3), None);
        assert_eq!(
            (0..3)
                .filter_map(|it| pick(&[4, 6], it))
                .collect::<Vec<_>>(),
            [4, 6, 4]
        );
        assert!(!allowed_cores().unwrap().is_empty());
    }
}
