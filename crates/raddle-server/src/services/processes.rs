//! The processes of clients. Each belongs to the connection that started it and ends with it.

mod command_sandbox;
mod managed;
mod run;
mod table;

pub(crate) use self::command_sandbox::{info, policy, wrap};
pub(crate) use self::managed::{allowed, without_closed};
pub(crate) use self::run::{CAPTURED_BYTES_MAX, OutputDelta, OutputPlan, OutputStream, ProcessRun};
pub(crate) use self::table::{ProcessName, Processes};
use crate::wire_error::WireError;

/// Limit: run time of a process, unless its client sets it; beyond it, the process ends with exit
/// code 124.
pub(crate) const TIME_MS: i64 = 10_000;

/// Limit: output of one stream of a process, unless its client sets it; beyond it, further output
/// is discarded.
pub(crate) const OUTPUT_BYTES: u64 = 1 << 20;

/// Splits a command into the program and its arguments.
pub(crate) fn program(
    command: Vec<String>,
) -> Result<(std::ffi::OsString, Vec<std::ffi::OsString>), WireError> {
    let mut argv = command.into_iter().map(Into::into);
    let program = argv.next();
    let empty = || WireError::Refused("command must not be empty".into());
    Ok((program.ok_or_else(empty)?, argv.collect()))
}

/// Parses a timeout in milliseconds.
pub(crate) fn time(milliseconds: i64) -> Result<std::time::Duration, WireError> {
    let refused = |_| WireError::Refused("timeoutMs must not be negative".into());
    let milliseconds = u64::try_from(milliseconds).map_err(refused)?;
    Ok(std::time::Duration::from_millis(milliseconds))
}
