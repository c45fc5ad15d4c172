//! What an agent can do.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

#[cfg(doc)]
use crate::ReachError;
use crate::call::Call;
use crate::wire::{self, OkLine};

/// What an agent can do: operations by name. `ping`, which answers `null`, is always among them.
pub struct Operations {
    handlers: HashMap<&'static str, Arc<Handler>>,
}

/// Runs one call and gives the whole reply line for its id.
pub(crate) type Handler =
    dyn Fn(u64, Option<&RawValue>, &Call) -> Result<Vec<u8>, String> + Send + Sync;

impl Operations {
    /// Adds an operation. Its handler runs in a thread of its own per call, several at once; its error reaches the
    /// caller as [`ReachError::Operation`], and so does its panic.
    ///
    /// # Panics
    /// When the name is taken: two crates would each believe the operation to be theirs.
    pub fn add<P, R, E>(
        &mut self,
        name: &'static str,
        run: impl Fn(P, &Call) -> Result<R, E> + Send + Sync + 'static,
    ) where
        P: DeserializeOwned,
        R: Serialize,
        E: Display,
    {
        let handler = move |id: u64, params: Option<&RawValue>, call: &Call| {
            let params = serde_json::from_str(params.map_or("null", RawValue::get))
                .map_err(|error| format!("the parameters of {name} do not fit: {error}"))?;
            let result = run(params, call).map_err(|error| error.to_string())?;
            wire::encode(&OkLine { id, ok: &result })
                .map_err(|why| format!("the answer of {name} can't be sent: {why}"))
        };
        let before = self.handlers.insert(name, Arc::new(handler));
        assert!(before.is_none(), "operation {name} was added twice");
    }

    /// The operation of that name, and its handler.
    pub(crate) fn find(&self, name: &str) -> Option<(&'static str, &Arc<Handler>)> {
        self.handlers
            .get_key_value(name)
            .map(|(name, handler)| (*name, handler))
    }
}

impl Default for Operations {
    fn default() -> Self {
        let mut operations = Self {
            handlers: HashMap::new(),
        };
        operations.add("ping", |_: IgnoredAny, _: &Call| Ok::<_, String>(()));
        operations
    }
}
