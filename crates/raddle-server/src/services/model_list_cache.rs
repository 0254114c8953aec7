//! The response to `model/list` without the models of vendors, cached. Every client requests it at
//! its start, and it changes only with the configuration.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_config::State;
use serde_json::value::RawValue;

use crate::wire_error::WireError;

/// The newest response.
#[derive(Debug, Default)]
pub(crate) struct ModelListCache {
    newest: Mutex<Option<CachedList>>,
}

#[derive(Clone, Debug)]
struct CachedList {
    /// The configuration that the list was made from.
    state: Arc<State>,
    list: Arc<RawValue>,
}

impl ModelListCache {
    /// Returns the response for a configuration. Calls `make` if it is not cached.
    pub(crate) fn get_or_make<F>(
        &self,
        state: &Arc<State>,
        make: F,
    ) -> Result<Arc<RawValue>, WireError>
    where
        F: FnOnce() -> Result<Box<RawValue>, WireError>,
    {
        let cached = self.lock().clone();
        if let Some(cached) = cached.filter(|it| Arc::ptr_eq(&it.state, state)) {
            return Ok(cached.list);
        }
        let list: Arc<RawValue> = make()?.into();
        *self.lock() = Some(CachedList {
            state: state.clone(),
            list: list.clone(),
        });
        Ok(list)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedList>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
