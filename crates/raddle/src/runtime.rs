//! The runtime of commands that wait for few things at a time.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime on the current thread, with timers and sockets.
pub(crate) fn current_thread() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
