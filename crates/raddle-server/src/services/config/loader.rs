//! Looks at the configuration's files, on a thread that may wait for the home's disk.
//!
//! Whoever asks while a look is under way may have changed a file that this look is past, so it gets the
//! next one; all who wait share that. A busy server looks a few times for many requests, and no thread
//! that serves clients ever waits for a disk: it only asks, of a disk of this machine, whether the files are
//! as they were.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Config, ConfigError, State};
use crate::disk::DiskExecutor;
use crate::wire_error::WireError;

/// Gets the configuration as it is now, or why it cannot be used; nothing if the home's disk had no turn.
type ConfigCallback = Box<dyn FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send>;

/// What a look saw.
pub(crate) struct ConfigSnapshot<'a> {
    config: &'a Config,
    outcome: &'a Result<Arc<State>, ConfigError>,
}

impl ConfigSnapshot<'_> {
    /// The configuration as its files say it now; a file that cannot be used is an error.
    pub(crate) fn read(&self) -> Result<&Arc<State>, WireError> {
        let unusable = |error: &ConfigError| WireError::Refused(error.to_string().into());
        self.outcome.as_ref().map_err(unusable)
    }

    /// The configuration in force: where a file has become unusable, what was read before.
    pub(crate) fn in_force(&self) -> Arc<State> {
        match self.outcome {
            Ok(state) => state.clone(),
            Err(_) => self.config.state(),
        }
    }
}

/// Those who wait for a look. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ConfigLoader {
    queue: Arc<Mutex<ReadQueue>>,
}

#[derive(Default)]
struct ReadQueue {
    waiting: Vec<ConfigCallback>,
    /// Whether someone is about to look for those who wait.
    is_served: bool,
}

impl ConfigLoader {
    /// Hands the configuration as it is now to `asker`: here if it has not changed, else on a thread that
    /// may wait.
    pub(crate) fn ask<F>(&self, config: &Arc<Config>, home: &DiskExecutor, asker: F)
    where
        F: FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send + 'static,
    {
        if let Some(state) = config.at_hand() {
            let outcome = &Ok(state);
            return asker(Ok(ConfigSnapshot { config, outcome }));
        }
        let mut line = self.line();
        line.waiting.push(Box::new(asker));
        if std::mem::replace(&mut line.is_served, true) {
            return;
        }
        drop(line);
        let (looks, config, home) = (self.clone(), config.clone(), home.clone());
        tokio::spawn(async move {
            let served = match home.acquire_shared().await {
                Ok(turn) => {
                    let looks = looks.clone();
                    turn.run(move || looks.serve(&config)).await
                }
                Err(error) => Err(error),
            };
            if served.is_err() {
                looks.fail();
            }
        });
    }

    /// Looks for those who wait until nobody does.
    fn serve(&self, config: &Config) {
        loop {
            let mut line = self.line();
            let askers = std::mem::take(&mut line.waiting);
            line.is_served = !askers.is_empty();
            drop(line);
            if askers.is_empty() {
                return;
            }
            let outcome = config.refresh();
            for asker in askers {
                let looked = ConfigSnapshot {
                    config,
                    outcome: &outcome,
                };
                // Its reply is dropped on the way out of a panic, which answers it.
                if catch_unwind(AssertUnwindSafe(|| asker(Ok(looked)))).is_err() {
                    tracing::error!("a reader of the configuration panicked");
                }
            }
        }
    }

    /// The home had no turn, or the look failed inside: everyone is told, and the next one begins anew.
    fn fail(&self) {
        let mut line = self.line();
        let askers = std::mem::take(&mut line.waiting);
        line.is_served = false;
        drop(line);
        for asker in askers {
            asker(Err(WireError::Overloaded));
        }
    }

    fn line(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ConfigLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} wait for a look", self.line().waiting.len())
    }
}
