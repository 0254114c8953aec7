//! The table of a connection's processes.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_sandbox::{ChildProcess, Control, Input, TerminalSize};

use crate::wire_error::{WireError, quoted};

/// Limit: processes of one connection; beyond it, the server rejects the request with -32001 and
/// says when to retry.
const PROCESSES_MAX: usize = 64;

/// Limit: the name of a process; beyond it, the server rejects the request with -32600.
///
/// Every notification carries it.
const NAME_BYTES_MAX: usize = 256;

/// A client's name for a process. Each of the two families of methods has names of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProcessName {
    /// Name of a `command/exec`.
    Command(String),
    /// A `command/exec` to which the client gave no name.
    Unnamed(u64),
    /// Name of a `process/spawn`.
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
            Self::Command(id) => write!(f, "processId {}", quoted(id)),
            Self::Unnamed(_) => f.write_str("a command without processId"),
            Self::Process(handle) => write!(f, "processHandle {}", quoted(handle)),
        }
    }
}

/// The processes of one connection.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    running: Mutex<ProcessTable>,
    /// Number of output bytes stored for pending responses.
    pub(super) buffered_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct ProcessTable {
    by_name: HashMap<ProcessName, ProcessEntry>,
    /// Whether the client is disconnecting, so that no process may start.
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
    /// The process was started without stdin.
    Absent,
}

impl Processes {
    /// Starts a process and registers it, if its name is free. Its stdin stays in the table: from
    /// then on the client can write to it and end it.
    pub(super) fn start<T, F>(
        &self,
        name: &ProcessName,
        start: F,
    ) -> Result<(ChildProcess, T), WireError>
    where
        F: FnOnce() -> io::Result<(ChildProcess, T)>,
    {
        let mut running = self.running();
        running.may_begin(name)?;
        let (mut process, rest) = start()?;
        let entry = ProcessEntry {
            control: process.control.clone(),
            input: process
                .input
                .take()
                .map_or(StdinState::Absent, StdinState::Open),
        };
        running.by_name.insert(name.clone(), entry);
        Ok((process, rest))
    }

    /// Removes a process, so that its name is free.
    pub(super) fn remove(&self, name: &ProcessName) {
        self.running().by_name.remove(name);
    }

    /// Writes base64 data to the stdin of a process, and may close it.
    pub(crate) fn write(
        &self,
        name: &ProcessName,
        delta_base64: Option<&str>,
        close: bool,
    ) -> Result<(), WireError> {
        if delta_base64.is_none() && !close {
            return Err(WireError::Refused("pass deltaBase64 or closeStdin".into()));
        }
        let bytes = STANDARD
            .decode(delta_base64.unwrap_or_default())
            .map_err(|error| WireError::Refused(format!("deltaBase64: {error}").into()))?;
        let mut running = self.running();
        let entry = running.find(name)?;
        let input = match &entry.input {
            StdinState::Open(input) => input,
            StdinState::Closed => return Err(refused(name, "its stdin is closed")),
            StdinState::Absent => {
                return Err(refused(name, "it was started without streamStdin or tty"));
            }
        };
        if !bytes.is_empty() {
            // A request that waited would block its lane, so a client that writes too much must
            // retry later.
            input.write(bytes).map_err(|_full| WireError::Overloaded)?;
        }
        if close
            && let StdinState::Open(input) = std::mem::replace(&mut entry.input, StdinState::Closed)
        {
            input.close();
        }
        Ok(())
    }

    /// Resizes the terminal of a process.
    pub(crate) fn resize(&self, name: &ProcessName, size: TerminalSize) -> Result<(), WireError> {
        match self.running().find(name)?.control.resize(size)? {
            true => Ok(()),
            false => Err(refused(name, "it was started without tty")),
        }
    }

    /// Ends a process. The code that waits for it reports how it ended.
    pub(crate) fn end(&self, name: &ProcessName) -> Result<(), WireError> {
        self.running().find(name)?.control.end();
        Ok(())
    }

    /// Ends all processes when the client disconnects; no further process starts.
    pub(crate) fn end_all(&self) {
        let mut running = self.running();
        running.is_over = true;
        running
            .by_name
            .values()
            .for_each(|entry| entry.control.end());
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
            return Err(refused(name, "a process with this name is already running"));
        }
        if self.is_over || self.by_name.len() >= PROCESSES_MAX {
            return Err(WireError::Overloaded);
        }
        Ok(())
    }

    fn find(&mut self, name: &ProcessName) -> Result<&mut ProcessEntry, WireError> {
        let entry = self.by_name.get_mut(name);
        entry.ok_or_else(|| refused(name, "no process with this name is running"))
    }
}

fn refused(name: &ProcessName, why: &str) -> WireError {
    WireError::Refused(format!("{name}: {why}").into())
}
