//! `raddle mock`: serves a model that follows a script.

use anyhow::{Context, Result, bail};
use raddle_console::Printer;
use raddle_model::scripted::{ModelScript, ScriptedServer};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Mock;

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Mock) -> Result<()> {
    if !args.listen.ip().is_loopback() && !args.insecure_any_address {
        bail!(
            "{} can be reached from other machines, and the mock shows everyone what it was asked; \
             listen on 127.0.0.1, or add --insecure-any-address",
            args.listen
        );
    }
    let script = match &args.script {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}; correct --script", path.display()))?;
            let name = path.display();
            ModelScript::parse(&text)
                .with_context(|| format!("{name} is no script; docs/mock.md has all keys"))?
        }
        None => ModelScript::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args, script))
}

async fn serve(args: &Mock, script: ModelScript) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let server = ScriptedServer::listen(args.listen, script)
        .await
        .with_context(|| {
            let address = args.listen;
            format!("cannot listen on {address}; name another address or port with --listen")
        })?;
    say(server.base_url())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut printer = Printer::new();
    printer.line(line)?;
    Ok(printer.flush()?)
}
