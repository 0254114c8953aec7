//! Loads the configuration's files, on a thread that may block on the home's disk.
//!
//! A request that arrives during a load may have changed a file that this load has already read, so
//! it gets the next load; all waiting requests share that one. A busy server loads a few times for
//! many requests. No thread that serves clients ever blocks on a disk: it only checks the metadata
//! of files on a local disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_config::{Config, ConfigError, State};

use crate::disk::DiskExecutor;
use crate::wire_error::WireError;

/// Callback for the current configuration, or the error; the error is an overload if the home's
/// disk had no permit.
type ConfigCallback = Box<dyn FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send>;

/// Result of a load.
pub(crate) struct ConfigSnapshot<'a> {
    config: &'a Config,
    outcome: &'a Result<Arc<State>, ConfigError>,
}

impl ConfigSnapshot<'_> {
    /// Returns the configuration of the present files; a file that cannot be used is an error.
    pub(crate) fn read(&self) -> Result<&Arc<State>, WireError> {
        let unusable = |error: &ConfigError| WireError::Refused(error.to_string().into());
        self.outcome.as_ref().map_err(unusable)
    }

    /// Returns the configuration in force: the last usable one, if a file has become unusable.
    pub(crate) fn in_force(&self) -> Arc<State> {
        match self.outcome {
            Ok(state) => state.clone(),
            Err(_) => self.config.state(),
        }
    }
}

/// The requests that wait for a load. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ConfigLoader {
    queue: Arc<Mutex<ReadQueue>>,
}

#[derive(Default)]
struct ReadQueue {
    waiting: Vec<ConfigCallback>,
    /// Whether a task is about to load for the waiting requests.
    is_served: bool,
}

impl ConfigLoader {
    /// Passes the current configuration to the callback: here if it has not changed, else on a
    /// thread that may block.
    pub(crate) fn load<F>(&self, config: &Arc<Config>, home: &DiskExecutor, callback: F)
    where
        F: FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send + 'static,
    {
        if let Some(state) = config.without_blocking() {
            let outcome = &Ok(state);
            return callback(Ok(ConfigSnapshot { config, outcome }));
        }
        let mut queue = self.lock();
        queue.waiting.push(Box::new(callback));
        if std::mem::replace(&mut queue.is_served, true) {
            return;
        }
        drop(queue);
        let (loader, config, home) = (self.clone(), config.clone(), home.clone());
        tokio::spawn(async move {
            let loaded = match home.acquire_shared().await {
                Ok(permit) => {
                    let loader = loader.clone();
                    permit.run(move || loader.serve(&config)).await
                }
                Err(error) => Err(error),
            };
            if loaded.is_err() {
                loader.fail();
            }
        });
    }

    /// Loads for the waiting requests until none waits.
    fn serve(&self, config: &Config) {
        loop {
            let mut queue = self.lock();
            let callbacks = std::mem::take(&mut queue.waiting);
            queue.is_served = !callbacks.is_empty();
            drop(queue);
            if callbacks.is_empty() {
                return;
            }
            let outcome = config.refresh();
            for callback in callbacks {
                let snapshot = ConfigSnapshot {
                    config,
                    outcome: &outcome,
                };
                // A panic drops the reply, which answers the request with an error.
                if catch_unwind(AssertUnwindSafe(|| callback(Ok(snapshot)))).is_err() {
                    tracing::error!("a reader of the configuration panicked");
                }
            }
        }
    }

    /// Fails all waiting requests, because no permit was free or the load panicked. The next
    /// request starts anew.
    fn fail(&self) {
        let mut queue = self.lock();
        let callbacks = std::mem::take(&mut queue.waiting);
        queue.is_served = false;
        drop(queue);
        for callback in callbacks {
            callback(Err(WireError::Overloaded));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ConfigLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} requests wait for a load", self.lock().waiting.len())
    }
}
