//! The rooms behind the gate. Each holds one thing and is its only keeper.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod models;
pub(crate) mod pages;
pub(crate) mod searches;
pub(crate) mod skills;
pub(crate) mod watches;

use std::path::Path;
use std::sync::Arc;

use self::config::{Config, ConfigError};
use self::searches::Searches;
use self::watches::Lookout;
use crate::disk::Disk;
use crate::lanes::Lanes;
use crate::server::Options;

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
}

impl Rooms {
    pub(crate) fn open(options: Options) -> Result<Self, ConfigError> {
        let config = Config::open(&options.paths, &options.overrides)?;
        make_home(&options.paths.home);
        Ok(Self {
            options,
            lanes: Lanes::default(),
            home: Disk::new(HOME_JOBS_MAX),
            config: Arc::new(config),
            searches: Searches::default(),
            lookout: Lookout::default(),
        })
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
