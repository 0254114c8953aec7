//! `raddle thread unarchive`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_client::{Client, Options, Program, RejectAll, ServerAddress, Stderr};
use raddle_core::ThreadId;
use raddle_protocol::{ThreadUnarchiveParams, methods};

use super::{find, open_existing};
use crate::cli::ThreadUnarchive;
use crate::{log, runtime};

pub(super) fn run(folder: &Path, args: &ThreadUnarchive) -> Result<ExitCode> {
    let archive = open_existing(folder)?;
    let thread = find(&archive, &args.id)?;
    drop(archive);
    let restored = runtime::current_thread()?.block_on(restore(thread));
    restored.with_context(|| format!("the thread {thread} cannot be restored"))?;
    log::print_line(&format!("restored {thread}"));
    Ok(ExitCode::SUCCESS)
}

/// Restores a thread through a server of its own: only a server can write to a thread, and it
/// finds the server that has the thread loaded.
async fn restore(thread: ThreadId) -> Result<()> {
    let program = std::env::current_exe().context("cannot find out which program this is")?;
    let mut server = Program::new(program, ["app-server", "--recovery", "interrupt"]);
    server.stderr = Stderr::Inherit;
    if std::env::var_os("RADDLE_LOG").is_none() {
        server.env.push(("RADDLE_LOG".into(), "error".into()));
    }
    let options = Options::new("raddle-thread", env!("CARGO_PKG_VERSION"));
    let client = Client::connect(ServerAddress::Child(server), options, RejectAll).await?;
    let params = ThreadUnarchiveParams {
        thread_id: thread,
        client_request_id: None,
    };
    let restored = client.call::<methods::ThreadUnarchive>(params).await;
    client.close().await;
    restored?;
    Ok(())
}
