//! `command/exec`: run a command and wait for it.

pub(crate) mod resize;
pub(crate) mod terminate;
pub(crate) mod write;

use std::path::PathBuf;
use std::sync::Arc;

use raddle_config::permissions;
use raddle_core::Settings;
use raddle_protocol::methods::CommandExec;
use raddle_protocol::{
    CommandExecOutputDeltaNotification, CommandExecOutputStream, CommandExecParams,
    CommandExecResponse, CommandExecTerminalSize, SandboxPolicy,
};
use raddle_sandbox::{
    ConfinedProcess, Launch, Policy, ReadScope, SandboxRules, Stdio, TerminalSize, environment,
};

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::files;
use crate::services::processes::{
    self, CAPTURED_BYTES_MAX, OUTPUT_BYTES, OutputDelta, OutputPlan, OutputStream, ProcessName,
    ProcessRun, TIME_MS,
};
use crate::services::threads::folders;
use crate::services::{profiles, sandbox_policy};
use crate::session::Session;
use crate::spans;
use crate::wire_error::WireError;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<CommandExec>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    // Begins in the order of arrival: a later request may name the process.
    let prepared = exec_request(params).and_then(|request| {
        let ExecRequest {
            name,
            launch,
            limits,
            stdio,
            plan,
        } = request;
        let (run, start) = ProcessRun::begin(&session, name, plan, || state.launcher.open(stdio))?;
        Ok((run, start, launch, limits))
    });
    let (mut run, start, launch, limits) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return reply.error(error),
    };
    let state = state.clone();
    spans::spawn(async move {
        let confined = tokio::select! {
            biased;
            () = session.outgoing.when_gone() => Err(WireError::Dropped),
            () = run.cut_short() => Ok(None),
            confined = confine(&state, &session, launch, limits) => confined.map(Some),
        };
        let started = confined.and_then(|process| {
            match &process {
                Some(process) => start.confined(&process.confined)?,
                None => drop(start),
            }
            Ok(process)
        });
        match started {
            Ok(process) => answer(run, reply, process).await,
            Err(error) => {
                // Frees the name before the client receives the error.
                drop(run);
                reply.error(error);
            }
        }
    });
}

async fn confine(
    state: &ServerState,
    session: &Session,
    launch: Launch,
    limits: SandboxSource,
) -> Result<ConfinedProcess, WireError> {
    let config = state.config_now().await?;
    let sandbox = match limits {
        SandboxSource::Configured => {
            let choice = permissions::of_config(&config.with_request(None), None)?;
            sandbox_policy::of_choice(&choice)?
        }
        SandboxSource::Policy(policy) => sandbox_policy::stored(&policy)?,
        SandboxSource::Profile(id) => {
            let choice = permissions::of_profile(&config.with_request(None), &id)?;
            let sandbox = sandbox_policy::of_choice(&choice)?;
            profiles::allowed(state, choice.profile.as_ref(), &sandbox).await?;
            sandbox
        }
    };
    let hidden_paths = state.hidden_paths();
    let mut confinement = processes::policy(&sandbox, &config, &launch.cwd, &hidden_paths)?;
    if let Policy::Confined(rules) = &mut confinement.policy {
        resolve(state, rules).await?;
    }
    processes::allowed(state, &launch, sandbox).await?;
    if let Some(hosts) = confinement.network.take() {
        confinement.network = Some(processes::without_closed(state, hosts).await?);
    }
    processes::wrap(&state.sandbox, session, launch, confinement).await
}

/// Replaces each folder that the command may write, and each that reads are limited to, with its
/// real path.
async fn resolve(state: &ServerState, rules: &mut SandboxRules) -> Result<(), WireError> {
    let text = |it: &PathBuf| it.to_str().map(str::to_owned);
    let mut no_list = Vec::new();
    let listed = match &mut rules.read {
        ReadScope::All => &mut no_list,
        ReadScope::Listed(listed) => listed,
    };
    let folders = rules.write.iter().chain(&*listed);
    let folders = folders.filter_map(text).collect();
    let real_paths = folders::real_paths(state, folders, &Settings::default()).await?;
    for folder in rules.write.iter_mut().chain(listed) {
        let real = folder.to_str().and_then(|it| real_paths.get(it));
        if let Some(real) = real {
            *folder = PathBuf::from(real);
        }
    }
    Ok(())
}

/// Source of the sandbox that a command runs in.
enum SandboxSource {
    /// The sandbox of the configuration.
    Configured,
    Policy(SandboxPolicy),
    /// A permission profile, by its id.
    Profile(String),
}

/// A checked `command/exec` request.
struct ExecRequest {
    name: ProcessName,
    launch: Launch,
    limits: SandboxSource,
    stdio: Stdio,
    plan: OutputPlan,
}

/// Checks the params, or says why the command cannot run.
fn exec_request(params: CommandExecParams) -> Result<ExecRequest, WireError> {
    let refuse = |what: &'static str| Err(WireError::Refused(what.into()));
    let streams = params.tty || params.stream_stdin || params.stream_stdout_stderr;
    if streams && params.process_id.is_none() {
        return refuse("tty, streamStdin and streamStdoutStderr need a processId");
    }
    if params.size.is_some() && !params.tty {
        return refuse("size needs tty");
    }
    if params.disable_timeout && params.timeout_ms.is_some() {
        return refuse("disableTimeout and timeoutMs exclude each other");
    }
    if params.disable_output_cap && params.output_bytes_cap.is_some() {
        return refuse("disableOutputCap and outputBytesCap exclude each other");
    }
    let limits = match (params.permission_profile, params.sandbox_policy) {
        (Some(_), Some(_)) => {
            return refuse("`permissionProfile` cannot be combined with `sandboxPolicy`");
        }
        (Some(profile), None) => SandboxSource::Profile(profile),
        (None, Some(policy)) => SandboxSource::Policy(policy),
        (None, None) => SandboxSource::Configured,
    };
    let (program, args) = processes::program(params.command)?;
    let cwd = match &params.cwd {
        Some(cwd) => files::absolute(cwd)?,
        None => std::env::current_dir()?,
    };
    let changes = params.env.unwrap_or_default();
    let launch = Launch {
        program,
        args,
        cwd,
        env: environment::of(std::env::vars_os(), &changes),
    };
    let stdio = if params.tty {
        Stdio::Terminal(size(params.size))
    } else {
        let input = params.stream_stdin;
        Stdio::Pipes { input }
    };
    let time = match params.disable_timeout {
        true => None,
        false => Some(processes::time(params.timeout_ms.unwrap_or(TIME_MS))?),
    };
    let bytes_max = match params.disable_output_cap {
        true => None,
        false => Some(params.output_bytes_cap.unwrap_or(OUTPUT_BYTES)),
    };
    let process_id = params.process_id.clone();
    let plan = OutputPlan {
        tell: process_id
            .filter(|_| params.tty || params.stream_stdout_stderr)
            .map(|process_id| Box::new(move |delta| output_delta(&process_id, delta).into()) as _),
        bytes_max,
        all_or_nothing: true,
        time,
    };
    let name = params
        .process_id
        .map_or_else(ProcessName::unnamed, ProcessName::Command);
    Ok(ExecRequest {
        name,
        launch,
        limits,
        stdio,
        plan,
    })
}

fn size(size: Option<CommandExecTerminalSize>) -> TerminalSize {
    let Some(CommandExecTerminalSize { cols, rows }) = size else {
        return TerminalSize::default();
    };
    TerminalSize { rows, cols }
}

fn output_delta(process_id: &str, delta: OutputDelta) -> CommandExecOutputDeltaNotification {
    CommandExecOutputDeltaNotification {
        process_id: process_id.to_owned(),
        cap_reached: delta.cap_reached,
        delta_base64: delta.delta_base64,
        stream: match delta.stream {
            OutputStream::Stdout => CommandExecOutputStream::Stdout,
            OutputStream::Stderr => CommandExecOutputStream::Stderr,
        },
    }
}

/// Responds when the command has ended and all its output was sent. Keeps the sandbox until then.
async fn answer(
    mut run: ProcessRun,
    reply: Reply<CommandExecResponse>,
    _confined: Option<ConfinedProcess>,
) {
    if let Err(error) = run.started().await {
        return reply.error(error);
    }
    let outcome = run.finish().await;
    if outcome.stdout.is_too_much || outcome.stderr.is_too_much {
        return reply.error(WireError::OutputTooLarge {
            bytes_max: CAPTURED_BYTES_MAX,
        });
    }
    let bytes = outcome.stdout.len() + outcome.stderr.len();
    let hold = reply.session().outgoing.reserve(bytes).await;
    reply.ok(&CommandExecResponse {
        exit_code: outcome.exit_code,
        stdout: outcome.stdout.text(),
        stderr: outcome.stderr.text(),
    });
    drop(hold);
}
