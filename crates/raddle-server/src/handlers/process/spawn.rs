//! `process/spawn`: start a process outside any thread and without a sandbox; notify the client of
//! its output and end.

use std::sync::Arc;

use raddle_core::Sandbox;
use raddle_protocol::methods::ProcessSpawn;
use raddle_protocol::{
    Maybe, ProcessExitedNotification, ProcessOutputDeltaNotification, ProcessOutputStream,
    ProcessSpawnParams, ProcessSpawnResponse, ProcessTerminalSize,
};
use raddle_sandbox::{Launch, Stdio, TerminalSize, environment};

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::files;
use crate::services::processes::{
    self, OUTPUT_BYTES, OutputDelta, OutputPlan, OutputStream, ProcessName, ProcessRun, TIME_MS,
};
use crate::session::Session;
use crate::spans;
use crate::wire_error::WireError;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ProcessSpawn>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let handle = params.process_handle.clone();
    // Begins before the connection can end, which ends its processes.
    let prepared = spawn_request(params).and_then(|(launch, stdio, plan)| {
        let name = ProcessName::Process(handle.clone());
        let (run, start) = ProcessRun::begin(&session, name, plan, || state.launcher.open(stdio))?;
        Ok((run, start, launch))
    });
    let (mut run, start, launch) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return reply.error(error),
    };
    let state = state.clone();
    spans::spawn(async move {
        let allowed = tokio::select! {
            biased;
            () = session.outgoing.when_gone() => Err(WireError::Dropped),
            () = run.cut_short() => Ok(false),
            allowed = processes::allowed(&state, &launch, Sandbox::FullAccess) => allowed.map(|()| true),
        };
        let started = allowed.and_then(|may_start| {
            match may_start {
                true => start.with(launch)?,
                false => drop(start),
            }
            Ok(())
        });
        match started {
            Ok(()) => respond_and_report_exit(run, handle, reply, session).await,
            Err(error) => {
                // Frees the name before the client receives the error.
                drop(run);
                reply.error(error);
            }
        }
    });
}

/// Checks the params, or says why the process cannot run.
fn spawn_request(params: ProcessSpawnParams) -> Result<(Launch, Stdio, OutputPlan), WireError> {
    if params.size.is_some() && !params.tty {
        return Err(WireError::Refused("size needs tty".into()));
    }
    let (program, args) = processes::program(params.command)?;
    let launch = Launch {
        program,
        args,
        cwd: files::absolute(&params.cwd)?,
        env: environment::of(std::env::vars_os(), &params.env.unwrap_or_default()),
    };
    let stdio = if params.tty {
        Stdio::Terminal(size(params.size))
    } else {
        let input = params.stream_stdin;
        Stdio::Pipes { input }
    };
    let time = match params.timeout_ms {
        Maybe::Absent => Some(processes::time(TIME_MS)?),
        Maybe::Null => None,
        Maybe::Value(milliseconds) => Some(processes::time(milliseconds)?),
    };
    let bytes_max = match params.output_bytes_cap {
        Maybe::Absent => Some(OUTPUT_BYTES),
        Maybe::Null => None,
        Maybe::Value(bytes) => Some(bytes),
    };
    let handle = params.process_handle;
    let streams_output = params.tty || params.stream_stdout_stderr;
    let plan = OutputPlan {
        tell: streams_output
            .then(|| Box::new(move |delta| output_delta(&handle, delta).into()) as _),
        bytes_max,
        all_or_nothing: false,
        time,
    };
    Ok((launch, stdio, plan))
}

fn size(size: Option<ProcessTerminalSize>) -> TerminalSize {
    let Some(ProcessTerminalSize { cols, rows }) = size else {
        return TerminalSize::default();
    };
    TerminalSize { rows, cols }
}

fn output_delta(process_handle: &str, delta: OutputDelta) -> ProcessOutputDeltaNotification {
    ProcessOutputDeltaNotification {
        process_handle: process_handle.to_owned(),
        cap_reached: delta.cap_reached,
        delta_base64: delta.delta_base64,
        stream: match delta.stream {
            OutputStream::Stdout => ProcessOutputStream::Stdout,
            OutputStream::Stderr => ProcessOutputStream::Stderr,
        },
    }
}

/// Responds when the process runs, and sends `process/exited` when it has ended and all its output
/// was sent.
async fn respond_and_report_exit(
    mut run: ProcessRun,
    process_handle: String,
    reply: Reply<ProcessSpawnResponse>,
    session: Arc<Session>,
) {
    if let Err(error) = run.started().await {
        return reply.error(error);
    }
    reply.ok(&ProcessSpawnResponse {});
    let outcome = run.finish().await;
    let bytes = outcome.stdout.len() + outcome.stderr.len();
    let hold = session.outgoing.reserve(bytes).await;
    let exited = ProcessExitedNotification {
        exit_code: outcome.exit_code,
        process_handle,
        stderr: outcome.stderr.text(),
        stderr_cap_reached: outcome.stderr.cap_reached,
        stdout: outcome.stdout.text(),
        stdout_cap_reached: outcome.stdout.cap_reached,
        output_drain_timed_out: Some(outcome.drain_timed_out),
    };
    session.notify(&exited.into());
    drop(hold);
}
