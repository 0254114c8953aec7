//! The rooms behind the gate. Each holds one thing and is its only keeper.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod models;
pub(crate) mod pages;
pub(crate) mod providers;
pub(crate) mod searches;
pub(crate) mod skills;
pub(crate) mod threads;
pub(crate) mod watches;

use std::path::Path;
use std::sync::Arc;

use raddle_agent::Threads;

use self::config::{Config, ConfigError, State};
use self::providers::Providers;
use self::searches::Searches;
use self::watches::Lookout;
use crate::disk::Disk;
use crate::lanes::Lanes;
use crate::server::Options;
use crate::session::Session;
use crate::wire_error::WireError;

/// How many jobs may read the server's own home at once.
const HOME_JOBS_MAX: usize = 16;

/// Everything the connections share.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) options: Options,
    pub(crate) lanes: Lanes,
    /// The threads for what is in the server's own home.
    pub(crate) home: Disk,
    pub(crate) config: Arc<Config>,
    pub(crate) searches: Searches,
    pub(crate) lookout: Lookout,
    pub(crate) threads: Threads,
}

impl Rooms {
    pub(crate) fn open<F>(options: Options, threads: F) -> Result<Self, ConfigError>
    where
        F: FnOnce(Providers) -> Threads,
    {
        let config = Arc::new(Config::open(&options.paths, &options.overrides)?);
        let threads = threads(Providers::of(&config));
        make_home(&options.paths.home);
        Ok(Self {
            options,
            lanes: Lanes::default(),
            home: Disk::of_home(HOME_JOBS_MAX),
            config,
            searches: Searches::default(),
            lookout: Lookout::default(),
            threads,
        })
    }
}

impl Rooms {
    /// The configuration as it is now, for a client's request. A file that has become unusable is told
    /// by `config/read`; what was read before is in force.
    pub(crate) async fn config_now(&self, session: &Session) -> Result<Arc<State>, WireError> {
        if let Some(state) = self.config.unchanged() {
            return Ok(state);
        }
        let config = self.config.clone();
        let look = move || config.refresh().unwrap_or_else(|_| config.state());
        self.home.run(&session.outgoing, look).await
    }
}

/// Clients are told of the home and may look there at once, so it is made when it is missing. Without
/// one the server still serves what needs none.
fn make_home(home: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home);
    if let Err(error) = made {
        tracing::warn!(home = %home.display(), %error, "the home cannot be made");
    }
}
