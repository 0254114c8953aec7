//! The store on PostgreSQL, which is part of builds with the feature `fleet`.

#[cfg(feature = "fleet")]
mod fleet {
    use raddle_config::PostgresStore;
    use raddle_core::ports::{ReadError, StoreTimeouts};
    use raddle_store::{FleetJournal, FleetOptions, ThreadStore};

    pub(crate) const TIMEOUTS: StoreTimeouts = FleetJournal::TIMEOUTS;

    /// Returns the options of a journal in the database.
    pub(crate) fn options(store: &PostgresStore) -> FleetOptions {
        let mut options = FleetOptions::new(store.address.0.clone());
        if let Some(schema) = &store.schema {
            options.schema.clone_from(schema);
        }
        options
    }

    /// Connects to the database, and creates or migrates its tables.
    pub(crate) async fn open(store: &PostgresStore) -> Result<Box<dyn ThreadStore>, ReadError> {
        Ok(Box::new(FleetJournal::open(&options(store)).await?))
    }

    /// Logs what is wrong with the database.
    pub(crate) async fn log_findings(store: &PostgresStore) {
        crate::fleet::findings::log_findings(&options(store)).await;
    }

    /// Whether this build has the store.
    pub(super) const IS_BUILT_IN: bool = true;
}

#[cfg(not(feature = "fleet"))]
mod fleet {
    use raddle_config::PostgresStore;
    use raddle_core::ports::{ReadError, StoreTimeouts};
    use raddle_store::ThreadStore;

    pub(crate) const TIMEOUTS: StoreTimeouts = StoreTimeouts::LOCAL;

    /// Fails, because this build has no such store.
    pub(crate) async fn open(_store: &PostgresStore) -> Result<Box<dyn ThreadStore>, ReadError> {
        Err(ReadError::Unusable(super::MISSING.to_owned()))
    }

    pub(crate) async fn log_findings(_store: &PostgresStore) {}

    /// Whether this build has the store.
    pub(super) const IS_BUILT_IN: bool = false;
}

#[cfg(feature = "fleet")]
pub(crate) use fleet::options;
pub(crate) use fleet::{TIMEOUTS, log_findings, open};

use anyhow::{Context, Result, ensure};
use raddle_config::{Override, StoreSetting};

use crate::config;
use crate::home::Home;

/// Advice for a build without the store.
const MISSING: &str = "this build stores threads in a home only, and a database is configured; install \
                       the build for fleets, or remove `[store]` from the configuration";

/// Returns the configured store, if this build has it.
pub(crate) fn configured_store(home: &Home, overrides: Vec<Override>) -> Result<StoreSetting> {
    let store = config::open(home, overrides)?.store();
    let store = store.context("the store of threads cannot be used")?;
    ensure_built_in(&store)?;
    Ok(store)
}

/// Fails if this build does not have a store.
pub(crate) fn ensure_built_in(store: &StoreSetting) -> Result<()> {
    ensure!(fleet::IS_BUILT_IN || *store == StoreSetting::Local, MISSING);
    Ok(())
}

/// Whether the configuration names a database. A configuration that cannot be read names none, so
/// that commands which rescue threads of the home still run.
pub(crate) fn is_configured(home: &Home) -> bool {
    let store = config::open(home, Vec::new()).ok().map(|it| it.store());
    !matches!(store, None | Some(Ok(StoreSetting::Local)))
}

/// Whether the configuration certainly stores the threads in the home.
pub(crate) fn is_local(home: &Home) -> bool {
    let store = config::open(home, Vec::new()).ok().map(|it| it.store());
    matches!(store, Some(Ok(StoreSetting::Local)))
}
