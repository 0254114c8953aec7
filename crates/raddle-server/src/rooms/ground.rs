//! What live threads stand on: where models are, and how commands are started.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_sandbox::{Engine, Fences, egress};

use super::config::Config;
use super::processes;
use super::providers::Providers;
use crate::wire_error::WireError;

/// What whoever makes the live threads is given.
#[derive(Debug)]
pub struct Ground {
    /// Where models are.
    pub providers: Providers,
    /// Starts commands.
    pub engine: Engine,
    /// The fence around them.
    pub fences: Fences,
    /// Whom commands that may use the network can reach.
    pub hosts: Hosts,
    /// What commands in a sandbox do not see.
    pub own: Vec<PathBuf>,
}

/// Whom commands that may use the network can reach, as the configuration says. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hosts {
    config: Arc<Config>,
}

impl Hosts {
    pub(super) fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// The rules as they are now, or what is wrong with them. May wait for the disk.
    pub fn rules(&self) -> Result<egress::Rules, String> {
        let state = self.config.refresh().map_err(|error| error.to_string())?;
        processes::hosts(&state).map_err(|error| match error {
            WireError::Refused(why) => why.into_owned(),
            _ => "the configuration cannot be used".to_owned(),
        })
    }
}
