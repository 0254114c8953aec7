//! The runtime of the transports to servers over HTTP.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// Name of the threads.
const THREAD: &str = "mcp-http";

/// Number of threads. A server whose messages are being parsed keeps no other server waiting, and
/// many such servers take no more than these threads from the rest of the process.
const THREADS: usize = 4;

/// Returns the runtime on which transports run; `None` if it cannot be started.
///
/// The transport parses events itself. That takes long for large ones, and so occupies threads that
/// no other part of the process waits for. Servers over HTTP share the threads.
pub(super) fn handle() -> Option<Handle> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name(THREAD)
            .enable_all()
            .build();
        runtime
            .inspect_err(|error| tracing::warn!(%error, "no threads for MCP servers over HTTP"))
            .ok()
    });
    runtime.as_ref().map(|it| it.handle().clone())
}
