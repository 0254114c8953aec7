//! The rooms behind the gate. Each holds one thing and is its only keeper.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod models;
pub(crate) mod pages;
pub(crate) mod searches;
pub(crate) mod skills;
pub(crate) mod watches;

use self::config::{Config, ConfigError};
use self::searches::Searches;
use crate::lanes::Lanes;
use crate::server::Options;

/// Everything the connections share.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) options: Options,
    pub(crate) lanes: Lanes,
    pub(crate) config: Config,
    pub(crate) searches: Searches,
}

impl Rooms {
    pub(crate) fn open(options: Options) -> Result<Self, ConfigError> {
        let config = Config::open(&options.paths, &options.overrides)?;
        Ok(Self {
            options,
            lanes: Lanes::default(),
            config,
            searches: Searches::default(),
        })
    }
}
