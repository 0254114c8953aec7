//! The dependencies of live threads, for commands that serve no client.

use std::sync::Arc;

use anyhow::{Context, Result};
use raddle_config::{Override, StoreSetting};
use raddle_core::Recovery;
use raddle_providers::VendorClient;
use raddle_sandbox::MeasureFn;
use raddle_server::{AgentDeps, Options, Server};
use tokio::sync::mpsc;

use crate::home::Home;
use crate::rules::RuleStore;
use crate::sandbox;
use crate::threads::{self, ThreadDeps};

/// Opens a server without connections, for its dependencies: they are those of `raddle app-server`,
/// except that the server uses no store. Keep the server as long as they are used.
pub(crate) fn open<T>(
    home: &Home,
    overrides: Vec<Override>,
    select: impl FnOnce(&AgentDeps, RuleStore) -> T,
) -> Result<(Server, T)> {
    let rules = RuleStore::open(home)?;
    let vendor_client = VendorClient::new(&home.state, Some(Arc::new(rules.clone())));
    let measure = sandbox::measuring(home, overrides.clone())?;
    let options = Options {
        measure_sandbox: Some(MeasureFn::new(measure)),
        overrides,
        login_shell: true,
        ..Options::new(home.paths())
    };
    let (peer_connections, _) = mpsc::channel(1);
    let mut selected = None;
    let server = Server::open(options, |deps| {
        selected = Some(select(&deps, rules.clone()));
        let thread_deps = ThreadDeps {
            home: &home.state,
            store: StoreSetting::Local,
            rules,
            recovery: Recovery::Interrupt,
            vendor_client: &vendor_client,
            peers: threads::local_peers(&home.state),
        };
        threads::open(thread_deps, deps, peer_connections)
    })?;
    let selected = selected.context("the server was not opened")?;
    Ok((server, selected))
}
