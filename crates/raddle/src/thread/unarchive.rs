//! `raddle thread unarchive`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_core::ThreadId;
use raddle_protocol::{ThreadUnarchiveParams, methods};

use super::{find, open_existing};
use crate::cli::ThreadUnarchive;
use crate::{log, runtime, thread_server};

pub(super) fn run(folder: &Path, args: &ThreadUnarchive) -> Result<ExitCode> {
    let archive = open_existing(folder)?;
    let thread = find(&archive, &args.id)?;
    drop(archive);
    restore(thread)
}

/// Restores a thread by a server.
pub(super) fn restore(thread: ThreadId) -> Result<ExitCode> {
    let restored = runtime::current_thread()?.block_on(call(thread));
    restored.with_context(|| format!("the thread {thread} cannot be restored"))?;
    log::print_line(&format!("restored {thread}"));
    Ok(ExitCode::SUCCESS)
}

async fn call(thread: ThreadId) -> Result<()> {
    let client = thread_server::connect().await?;
    let params = ThreadUnarchiveParams {
        thread_id: thread,
        client_request_id: None,
    };
    let restored = client.call::<methods::ThreadUnarchive>(params).await;
    client.close().await;
    restored?;
    Ok(())
}
