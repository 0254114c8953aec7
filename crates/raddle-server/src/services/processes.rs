//! The processes of clients. Each belongs to the connection that started it and ends with it.

mod command_sandbox;
mod managed;
mod run;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_sandbox::{ChildProcess, Control, Input, TerminalSize};

pub(crate) use self::command_sandbox::{
    accepts_second, hosts, info, of_mode, policy, unknown_policy, wrap,
};
pub(crate) use self::managed::{allowed, sandbox, without_closed};
pub(crate) use self::run::{CAPTURED_BYTES_MAX, OutputDelta, OutputPlan, OutputStream, ProcessRun};
use crate::session::Session;
use crate::wire_error::{WireError, shown};

/// How many processes one connection may have running.
const PROCESSES_MAX: usize = 64;

/// The longest name of a process. Every notification carries it.
const NAME_BYTES_MAX: usize = 256;

/// How long a process may run if its client does not say.
pub(crate) const TIME_MS: i64 = 10_000;

/// How much of each stream is kept or told if its client does not say.
pub(crate) const OUTPUT_BYTES: u64 = 1 << 20;

/// A client's name for a process. The two families of methods have names of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProcessName {
    /// Of `command/exec`.
    Command(String),
    /// Of a `command/exec` that nobody will name.
    Unnamed(u64),
    /// Of `process/spawn`.
    Process(String),
}

impl ProcessName {
    pub(crate) fn unnamed() -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self::Unnamed(NUMBERS.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(id) => write!(f, "processId {}", shown(id)),
            Self::Unnamed(_) => f.write_str("a command without processId"),
            Self::Process(handle) => write!(f, "processHandle {}", shown(handle)),
        }
    }
}

/// What runs for one connection.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    running: Mutex<ProcessTable>,
    /// How many bytes of output are kept for answers still to be made.
    buffered_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct ProcessTable {
    by_name: HashMap<ProcessName, ProcessEntry>,
    /// The client is leaving, so nothing begins any more.
    is_over: bool,
}

#[derive(Debug)]
struct ProcessEntry {
    control: Control,
    input: StdinState,
}

#[derive(Debug)]
enum StdinState {
    Open(Input),
    Closed,
    /// It was started without one.
    Absent,
}

/// A process's place among those of its connection, until this is dropped.
#[derive(Debug)]
pub(crate) struct ProcessSlot {
    pub(crate) session: Arc<Session>,
    name: ProcessName,
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        self.session.processes.running().by_name.remove(&self.name);
    }
}

impl Processes {
    /// Makes a process under a name, if that is free. From now on it can be written to and ended.
    pub(crate) fn begin<T, F>(
        session: &Arc<Session>,
        name: ProcessName,
        plan: OutputPlan,
        start: F,
    ) -> Result<(ProcessRun, T), WireError>
    where
        F: FnOnce() -> io::Result<(ChildProcess, T)>,
    {
        let mut running = session.processes.running();
        running.may_begin(&name)?;
        let (process, rest) = start()?;
        let ChildProcess {
            input,
            stdout,
            stderr,
            control: leash,
            exit: life,
        } = process;
        let held = ProcessEntry {
            control: leash.clone(),
            input: input.map_or(StdinState::Absent, StdinState::Open),
        };
        running.by_name.insert(name.clone(), held);
        drop(running);
        let place = ProcessSlot {
            session: session.clone(),
            name,
        };
        // What is too far away never comes.
        let until = plan
            .time
            .and_then(|time| tokio::time::Instant::now().checked_add(time));
        let run = ProcessRun {
            slot: place,
            plan,
            stdout,
            stderr,
            control: leash,
            exit: life,
            until,
            is_late: false,
            never_ran: false,
        };
        Ok((run, rest))
    }

    /// Gives a process something to read, in base64, and may end its input.
    pub(crate) fn write(
        &self,
        name: &ProcessName,
        delta_base64: Option<&str>,
        close: bool,
    ) -> Result<(), WireError> {
        if delta_base64.is_none() && !close {
            return Err(WireError::Refused(
                "deltaBase64 or closeStdin must be there".into(),
            ));
        }
        let bytes = STANDARD
            .decode(delta_base64.unwrap_or_default())
            .map_err(|error| WireError::Refused(format!("deltaBase64: {error}").into()))?;
        let mut running = self.running();
        let held = running.find(name)?;
        let input = match &held.input {
            StdinState::Open(input) => input,
            StdinState::Closed => return Err(refused(name, "its stdin is closed")),
            StdinState::Absent => {
                return Err(refused(name, "it was started without streamStdin or tty"));
            }
        };
        if !bytes.is_empty() {
            // Lanes let nobody past who waits, so whoever writes too much must try again later.
            input.write(bytes).map_err(|_full| WireError::Overloaded)?;
        }
        if close
            && let StdinState::Open(input) = std::mem::replace(&mut held.input, StdinState::Closed)
        {
            input.close();
        }
        Ok(())
    }

    /// Changes the size of a process's terminal.
    pub(crate) fn resize(&self, name: &ProcessName, size: TerminalSize) -> Result<(), WireError> {
        match self.running().find(name)?.control.resize(size)? {
            true => Ok(()),
            false => Err(refused(name, "it was started without tty")),
        }
    }

    /// Ends a process. How it ended is told where it is waited for.
    pub(crate) fn end(&self, name: &ProcessName) -> Result<(), WireError> {
        self.running().find(name)?.control.end();
        Ok(())
    }

    /// The client is leaving: nothing of it goes on, and nothing begins any more.
    pub(crate) fn end_all(&self) {
        let mut running = self.running();
        running.is_over = true;
        running.by_name.values().for_each(|held| held.control.end());
    }

    fn running(&self) -> MutexGuard<'_, ProcessTable> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessTable {
    fn may_begin(&self, name: &ProcessName) -> Result<(), WireError> {
        if let ProcessName::Command(text) | ProcessName::Process(text) = name
            && text.len() > NAME_BYTES_MAX
        {
            let what = format!(
                "{name} has {} bytes; it may have {NAME_BYTES_MAX}",
                text.len()
            );
            return Err(WireError::Refused(what.into()));
        }
        if self.by_name.contains_key(name) {
            return Err(refused(name, "one with this name is running"));
        }
        if self.is_over || self.by_name.len() >= PROCESSES_MAX {
            return Err(WireError::Overloaded);
        }
        Ok(())
    }

    fn find(&mut self, name: &ProcessName) -> Result<&mut ProcessEntry, WireError> {
        let held = self.by_name.get_mut(name);
        held.ok_or_else(|| refused(name, "nothing runs under this name"))
    }
}

fn refused(name: &ProcessName, why: &str) -> WireError {
    WireError::Refused(format!("{name}: {why}").into())
}

/// The program and its arguments.
pub(crate) fn program(
    command: Vec<String>,
) -> Result<(std::ffi::OsString, Vec<std::ffi::OsString>), WireError> {
    let mut words = command.into_iter().map(Into::into);
    let program = words.next();
    let empty = || WireError::Refused("command must not be empty".into());
    Ok((program.ok_or_else(empty)?, words.collect()))
}

/// How long a process may run.
pub(crate) fn time(milliseconds: i64) -> Result<std::time::Duration, WireError> {
    let refused = |_| WireError::Refused("timeoutMs must not be negative".into());
    let milliseconds = u64::try_from(milliseconds).map_err(refused)?;
    Ok(std::time::Duration::from_millis(milliseconds))
}
