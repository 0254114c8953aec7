//! The options of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raddle_config::{Override, Paths, Vendors};
use raddle_core::ThreadSource;
use raddle_sandbox::{KeeperCommand, MeasureFn};

use crate::peers::Peers;

/// Options that are fixed at the server's start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths of the server's own files.
    pub paths: Paths,
    /// Configuration from the command line, strongest last.
    pub overrides: Vec<Override>,
    /// The recorded source of new threads. The contract has no member for it in a request.
    pub source: ThreadSource,
    /// Files with tokens or secrets, beside those that the configuration names; no client may read
    /// them.
    pub secrets: Vec<PathBuf>,
    /// Command that starts the keepers of commands.
    pub keeper: KeeperCommand,
    /// Measures how strong a sandbox this machine supports. Without it no command runs in a
    /// sandbox.
    pub measure_sandbox: Option<MeasureFn>,
    /// Whether to read `PATH` from the user's login shell, unless the configuration forbids it.
    pub login_shell: bool,
    /// The other nodes; without them, requests for a thread that another one owns are rejected.
    pub peers: Option<Arc<dyn Peers>>,
    /// Client for the vendors' interfaces outside turns. Without it users cannot sign in, and the
    /// only models are those that the configuration names.
    pub vendors: Option<Arc<dyn Vendors>>,
    /// How long a websocket client may take until its `initialize` is accepted. A parent process
    /// may take longer.
    pub first_message: Duration,
    /// The maximum number of running requests of a connection; more are rejected with a retry hint.
    pub requests_max: usize,
    /// Capacity in bytes for the frames of a connection's running requests. While the next frame
    /// does not fit, the connection is not read. A single request may be larger.
    pub requests_bytes_max: usize,
    /// Timeout for running requests once their connection has ended. When the server stops, a slow
    /// client has as long again to read its last responses.
    pub drain: Duration,
}

impl Options {
    /// Returns options with the default limits.
    pub fn new(paths: Paths) -> Self {
        Self {
            paths,
            overrides: Vec::new(),
            source: ThreadSource::Editor,
            secrets: Vec::new(),
            keeper: KeeperCommand::own(),
            measure_sandbox: None,
            login_shell: false,
            peers: None,
            vendors: None,
            // Limit: time until `initialize` on a socket; beyond it, the websocket closes with
            // 1008.
            first_message: Duration::from_secs(30),
            // Limit: requests of one connection that run at a time; beyond it, the server rejects
            // the request with -32001 and says when to retry.
            requests_max: 256,
            // Limit: requests of one connection that run at a time, in bytes as received (a single
            // request may be larger); beyond it, the server stops reading the connection; after 30
            // s it rejects the request with -32001.
            requests_bytes_max: 64 << 20,
            // Limit: time for running requests after their connection ended, and for the last
            // responses at shutdown; beyond it, the responses are lost and logged; a server on
            // stdio exits non-zero.
            drain: Duration::from_secs(30),
        }
    }
}
