//! `raddle exec`: maps the command line to the options of a run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use raddle_client::ServerAddress;
use raddle_config::Override;
use raddle_exec::{Options, ThreadSelector};
use raddle_protocol::SandboxMode;

use crate::app_server;
use crate::cli::{Color, Exec, ExecCommand, ExecSandbox, ExecWorkspace, Unattended};
use crate::home::Home;
use crate::log;

/// Runs a turn and returns the exit status.
pub(crate) fn run(before: Vec<Override>, args: Exec) -> Result<ExitCode> {
    let options = match options(before, args) {
        Ok(options) => options,
        Err(error) => {
            log::print_line(&format!("raddle: {error:#}"));
            return Ok(ExitCode::from(raddle_exec::USAGE));
        }
    };
    // The environment of this process holds the keys too, not only the server's.
    app_server::disable_core_dumps()?;
    Ok(raddle_exec::run(options)?)
}

fn options(before: Vec<Override>, args: Exec) -> Result<Options> {
    let (thread, prompt, options) = match args.command {
        None => (ThreadSelector::New, args.prompt, args.options),
        Some(ExecCommand::Resume(resume)) => {
            ensure!(
                args.prompt.is_none(),
                "write the prompt after `resume` and the thread's id"
            );
            let (thread, prompt) =
                thread_selector(resume.last, resume.all, resume.thread, resume.prompt)?;
            (thread, prompt, args.options.and(resume.options))
        }
    };
    ensure!(
        options.workspace.is_none() || thread == ThreadSelector::New,
        "a thread keeps its workspace; leave out --workspace"
    );
    let mut config = before;
    config.extend(options.config);
    let token_variable = options.remote_auth_token_env.as_deref();
    let remote = options.remote.as_deref();
    Ok(Options {
        thread,
        prompt,
        config,
        budget: options.budget.map(|it| it.0).unwrap_or_default(),
        model: options.model,
        sandbox: options.sandbox.map(sandbox_mode),
        cd: options.cd,
        is_copied: options.workspace == Some(ExecWorkspace::Copy),
        add_dir: options.add_dir,
        image: options.image,
        output_schema: options.output_schema,
        output_last_message: options.output_last_message,
        json: options.json,
        unattended: options.unattended.map(unattended),
        ephemeral: options.ephemeral,
        remote: remote
            .map(|it| server_address(it, token_variable))
            .transpose()?,
        quiet: options.quiet,
        color: options.color.map_or(raddle_exec::Color::Auto, color),
        dangerously_bypass_approvals_and_sandbox: options.dangerously_bypass_approvals_and_sandbox,
        full_auto: options.full_auto,
        thread_source: options.thread_source,
    })
}

/// Returns the thread to resume, and the prompt: with `--last` the first argument is the prompt.
fn thread_selector(
    last: bool,
    of_any_folder: bool,
    thread: Option<String>,
    prompt: Option<String>,
) -> Result<(ThreadSelector, Option<String>)> {
    if last {
        ensure!(
            prompt.is_none(),
            "with --last there is no thread's id; give the prompt alone"
        );
        return Ok((ThreadSelector::Last { of_any_folder }, thread));
    }
    let thread =
        thread.context("name a thread: its id, or --last; `raddle thread list` has the ids")?;
    let id = thread
        .parse()
        .map_err(|_| anyhow!("`{thread}` is not a thread id; `raddle thread list` has them"))?;
    Ok((ThreadSelector::Old(id), prompt))
}

/// Returns the address of a running server.
fn server_address(url: &str, token_variable: Option<&str>) -> Result<ServerAddress> {
    let token = match token_variable {
        Some(name) => Some(std::env::var(name).map_err(|_| {
            anyhow!("the environment variable {name} is not set; set it to the token of the server")
        })?),
        None => None,
    };
    match url.strip_prefix("unix://") {
        Some("") => Ok(ServerAddress::Unix(Home::find()?.socket())),
        Some(path) => Ok(ServerAddress::Unix(PathBuf::from(path))),
        None if url.starts_with("ws://") => Ok(ServerAddress::WebSocket {
            url: url.to_owned(),
            token,
        }),
        None => bail!("--remote {url}: use ws://, unix://PATH or unix://"),
    }
}

fn sandbox_mode(mode: ExecSandbox) -> SandboxMode {
    match mode {
        ExecSandbox::ReadOnly => SandboxMode::ReadOnly,
        ExecSandbox::WorkspaceWrite => SandboxMode::WorkspaceWrite,
        ExecSandbox::DangerFullAccess => SandboxMode::DangerFullAccess,
    }
}

fn unattended(how: Unattended) -> raddle_exec::Unattended {
    match how {
        Unattended::Ask => raddle_exec::Unattended::Ask,
        Unattended::Deny => raddle_exec::Unattended::Deny,
        Unattended::Rules => raddle_exec::Unattended::Rules,
    }
}

fn color(when: Color) -> raddle_exec::Color {
    match when {
        Color::Auto => raddle_exec::Color::Auto,
        Color::Always => raddle_exec::Color::Always,
        Color::Never => raddle_exec::Color::Never,
    }
}
