//! What mdBook warns of: it tells a `tracing` subscriber, and goes on.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Runs something in this thread, and gathers its warnings and errors.
pub(crate) fn collect<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let result = tracing::subscriber::with_default(Collector(Arc::clone(&told)), run);
    let warnings = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
    (result, warnings)
}

struct Collector(Arc<Mutex<Vec<String>>>);

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_gathered_and_the_rest_is_not() {
        let (result, warnings) = collect(|| {
            tracing::info!("begun");
            tracing::warn!("page {} has no end", 7);
            "done"
        });
        assert_eq!(result, "done");
        assert_eq!(warnings, ["page 7 has no end"]);
    }
}
