//! `command/exec`: run a command and wait for it.

pub(crate) mod resize;
pub(crate) mod terminate;
pub(crate) mod write;

use std::path::PathBuf;
use std::sync::Arc;

use raddle_core::Settings;
use raddle_protocol::methods::CommandExec;
use raddle_protocol::{
    CommandExecOutputDeltaNotification, CommandExecOutputStream, CommandExecParams,
    CommandExecResponse, CommandExecTerminalSize, SandboxPolicy,
};
use raddle_sandbox::{
    ConfinedProcess, Launch, Policy, SandboxRules, Stdio, TerminalSize, environment,
};

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::files;
use crate::services::permissions;
use crate::services::processes::{
    self, CAPTURED_BYTES_MAX, OUTPUT_BYTES, OutputDelta, OutputPlan, OutputStream, ProcessName,
    ProcessRun, Processes, TIME_MS,
};
use crate::services::threads::folders;
use crate::session::Session;
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<CommandExec>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let begun = wish(params).and_then(|wish| {
        let ExecRequest {
            name,
            launch,
            limits,
            stdio,
            plan,
        } = wish;
        let (run, start) = Processes::begin(&session, name, plan, || rooms.launcher.open(stdio))?;
        Ok((run, start, launch, limits))
    });
    let (mut run, start, launch, limits) = match begun {
        Ok(begun) => begun,
        Err(error) => return reply.error(error),
    };
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let fenced = tokio::select! {
            biased;
            () = session.outgoing.when_gone() => Err(WireError::Dropped),
            () = run.cut_short() => Ok(None),
            fenced = fence(&rooms, &session, launch, limits) => fenced.map(Some),
        };
        let started = fenced.and_then(|inside| {
            match &inside {
                Some(inside) => start.confined(&inside.confined)?,
                None => drop(start),
            }
            Ok(inside)
        });
        match started {
            Ok(inside) => answer(run, reply, inside).await,
            Err(error) => {
                // Its name is free when the client hears of it.
                drop(run);
                reply.error(error);
            }
        }
    });
}

async fn fence(
    rooms: &ServerState,
    session: &Session,
    launch: Launch,
    limits: SandboxSource,
) -> Result<ConfinedProcess, WireError> {
    let config = rooms.config_now().await?;
    let wished = match limits {
        SandboxSource::Configured => None,
        SandboxSource::Policy(policy) => Some(policy),
        SandboxSource::Profile(id) => {
            let choice = permissions::of_profile(&config.with_request(None), &id)?;
            let sandbox = choice.sandbox()?;
            permissions::allowed(rooms, choice.profile.as_ref(), &sandbox).await?;
            Some(choice.policy)
        }
    };
    let own = rooms.hidden_paths();
    let mut held = processes::policy(wished.as_ref(), &config, &launch.cwd, &own)?;
    if let Policy::Confined(rules) = &mut held.policy {
        resolve(rooms, rules).await?;
    }
    let sandbox = processes::sandbox(&held, wished.as_ref())?;
    processes::allowed(rooms, &launch, sandbox).await?;
    if let Some(hosts) = held.network.take() {
        held.network = Some(processes::without_closed(rooms, hosts).await?);
    }
    processes::wrap(&rooms.sandbox, session, launch, held).await
}

/// Puts the real path in the place of each folder that the command may write.
async fn resolve(rooms: &ServerState, rules: &mut SandboxRules) -> Result<(), WireError> {
    let text = |it: &PathBuf| it.to_str().map(str::to_owned);
    let folders = rules.write.iter().filter_map(text).collect();
    let real_paths = folders::real_paths(rooms, folders, &Settings::default()).await?;
    for folder in &mut rules.write {
        let real = folder.to_str().and_then(|it| real_paths.get(it));
        if let Some(real) = real {
            *folder = PathBuf::from(real);
        }
    }
    Ok(())
}

/// What bounds a command.
enum SandboxSource {
    /// What the configuration says.
    Configured,
    Policy(SandboxPolicy),
    /// A permission profile, by its id.
    Profile(String),
}

/// What a client wants.
struct ExecRequest {
    name: ProcessName,
    launch: Launch,
    limits: SandboxSource,
    stdio: Stdio,
    plan: OutputPlan,
}

/// What the client wants, or why that cannot be.
fn wish(params: CommandExecParams) -> Result<ExecRequest, WireError> {
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
            .map(|process_id| Box::new(move |delta| told(&process_id, delta).into()) as _),
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

fn told(process_id: &str, delta: OutputDelta) -> CommandExecOutputDeltaNotification {
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

/// Answers when the command is over and all its output was told. Its fence stands as long.
async fn answer(
    mut run: ProcessRun,
    reply: Reply<CommandExecResponse>,
    _fence: Option<ConfinedProcess>,
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
