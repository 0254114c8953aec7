//! `raddle mcp-server`: threads as tools of an MCP server on stdio.
//!
//! A child process is the server, as for `raddle exec`, and this process is its client.

mod approvals;
mod elicitations;
mod runner;
mod turn_call;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use raddle_client::{Client, DeferredAnswers, Options, Program, ServerAddress, Stderr};
use raddle_config::Override;
use raddle_plugin::mcp_server;
use raddle_rpc::{ConnectionLimits, stdio};
use tokio::signal::unix::{SignalKind, signal};

use self::runner::ThreadRunner;
use crate::app_server;
use crate::cli::McpServer;
use crate::log;
use crate::runtime;

/// Serves until the client closes stdin or a signal arrives.
pub(crate) fn run(mut settings: Vec<Override>, args: McpServer) -> Result<ExitCode> {
    // The environment of this process holds the keys too, not only the server's.
    app_server::disable_core_dumps()?;
    settings.extend(args.settings.config);
    let runtime = runtime::current_thread()?;
    let outcome = runtime.block_on(serve(&settings));
    // A thread may be stuck in a read of stdin; it must not keep the process.
    runtime.shutdown_timeout(Duration::ZERO);
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn serve(settings: &[Override]) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let mut options = Options::new("raddle-mcp-server", env!("CARGO_PKG_VERSION"));
    // For the decisions that a request offers, and the permissions of a command.
    options.experimental = true;
    let address = ServerAddress::Child(child(settings)?);
    let client = Client::connect(address, options, DeferredAnswers)
        .await
        .context("cannot start the server of the threads")?;
    let connection = stdio(ConnectionLimits::default()).context("cannot read stdin")?;
    let loss = connection.loss.clone();
    if std::io::stdin().is_terminal() {
        log::print_line(
            "raddle: mcp-server speaks MCP on stdin and stdout, one message per line; press Ctrl-D \
             to end",
        );
    }
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    mcp_server::serve(connection, ThreadRunner::new(client.clone()), stop).await;
    client.close().await;
    match loss.why() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

/// This program as a server, which continues the turns of a server that was killed.
fn child(settings: &[Override]) -> Result<Program> {
    let program = std::env::current_exe().context("cannot find out which program this is")?;
    let words = ["app-server", "--recovery", "continue"];
    let words = words.into_iter().chain(["--session-source", "app-server"]);
    let mut args: Vec<OsString> = words.map(OsString::from).collect();
    for setting in settings {
        args.extend(["-c".into(), setting.to_string().into()]);
    }
    let mut child = Program::new(program, args);
    child.stderr = Stderr::Inherit;
    Ok(child)
}
