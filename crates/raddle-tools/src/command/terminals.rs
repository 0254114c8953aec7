//! Registry of running commands. Each ends by itself or with its turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_core::ports::BackgroundTerminal;
use raddle_core::{ItemId, ThreadId, TurnId};
use raddle_sandbox::{ConfinedProcess, Control, Exit, FileHold, Input, Output};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::tool_call_error::ToolCallError;

/// Maximum number of running commands per thread.
const RUNNING_MAX: usize = 64;

/// Maximum number of exited commands kept per thread until a call has read their exit code.
const ENDED_MAX: usize = 64;

const PIECE_BYTES: usize = 32 << 10;

/// Maximum output buffered for the call that listens, or for the next one.
const UNREAD_BYTES_MAX: usize = 256 << 10;

/// Time to wait for the rest of the output after the command exited.
const DRAIN: Duration = Duration::from_secs(2);

/// Timeout for commands to exit after the signal to end.
const ENDING: Duration = Duration::from_secs(5);

/// Running commands of all threads.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    all: Mutex<BTreeMap<u64, Arc<RunningCommand>>>,
    numbers: AtomicU64,
}

/// Description of a command and the thread, turn and item that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct CommandOwner {
    pub(super) thread: ThreadId,
    pub(super) turn: TurnId,
    pub(super) item: ItemId,
    pub(super) command: String,
    pub(super) cwd: String,
    /// Whether it runs outside the sandbox.
    pub(super) beyond: bool,
}

#[derive(Debug)]
pub(super) struct RunningCommand {
    pub(super) id: u64,
    pub(super) owner: CommandOwner,
    pub(super) input: Option<Input>,
    pub(super) control: Control,
    pid: Mutex<Option<u32>>,
    output: Mutex<OutputBuffer>,
    /// Text that was typed and is not yet a complete line.
    typed_line: Mutex<String>,
    /// Holds on the files that approvals of it, and of its input, cover.
    holds: Mutex<Vec<FileHold>>,
    /// Note for the model on how it was started.
    note: Mutex<Option<String>>,
    /// Notified when there is output, or the command exited.
    pub(super) changed: Notify,
    /// Notified when the buffer has space.
    space: Notify,
    is_over: watch::Sender<bool>,
}

/// Output that no call has read yet, and the exit code.
#[derive(Debug, Default)]
struct OutputBuffer {
    text: String,
    /// Number of bytes dropped in front of it.
    lost: usize,
    /// Whether a call listens. If so, the command waits for space; otherwise the oldest output is
    /// dropped.
    is_read: bool,
    exit: Option<Option<i32>>,
}

/// The next part of the output.
pub(super) struct OutputChunk {
    pub(super) text: String,
    pub(super) lost: usize,
    /// Set at the end of the output: the exit code, if it is known.
    pub(super) exit: Option<Option<i32>>,
}

impl Terminals {
    /// Adds a command under a new number, or fails if too many run.
    pub(super) fn add(
        &self,
        owner: CommandOwner,
        input: Option<Input>,
        control: Control,
    ) -> Result<Arc<RunningCommand>, ToolCallError> {
        let mut all = self.all();
        let commands = all.values().filter(|it| it.owner.thread == owner.thread);
        let evicted = evict(commands.map(|it| (it.id, it.output().state())))?;
        all.retain(|id, _| Some(*id) != evicted);
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let running = Arc::new(RunningCommand {
            id,
            owner,
            input,
            control,
            pid: Mutex::default(),
            output: Mutex::default(),
            typed_line: Mutex::default(),
            holds: Mutex::default(),
            note: Mutex::default(),
            changed: Notify::new(),
            space: Notify::new(),
            is_over: watch::Sender::new(false),
        });
        all.insert(id, running.clone());
        Ok(running)
    }

    /// Rejects a command outside the sandbox while sandboxed commands of the thread run. They could
    /// replace approved files before the command runs.
    pub(super) fn check_sandboxed(&self, owner: &CommandOwner) -> Result<(), ToolCallError> {
        if !owner.beyond {
            return Ok(());
        }
        let all = self.all();
        let commands = all.values().filter(|it| it.owner.thread == owner.thread);
        let sandboxed = commands.filter(|it| !it.owner.beyond && it.output().exit.is_none());
        let ids: Vec<String> = sandboxed.map(|it| it.id.to_string()).collect();
        match ids.is_empty() {
            true => Ok(()),
            false => Err(ToolCallError::new(format!(
                "no command may run outside the sandbox while commands of this thread run in it. End these sessions first, \
                 each with write_stdin and \\u0003, or wait for them, and call again: {}",
                ids.join(", ")
            ))),
        }
    }

    /// Whether a command of this thread holds files.
    pub(super) fn has_hold(&self, thread: ThreadId) -> bool {
        let all = self.all();
        let mut commands = all.values().filter(|it| it.owner.thread == thread);
        commands.any(|it| !it.holds().is_empty())
    }

    /// Returns a command of this thread.
    pub(super) fn get(&self, thread: ThreadId, id: u64) -> Option<Arc<RunningCommand>> {
        let all = self.all();
        all.get(&id).filter(|it| it.owner.thread == thread).cloned()
    }

    pub(super) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    /// Lists the commands of a thread that no call listens to, oldest first.
    pub(crate) fn list(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        let all = self.all();
        let commands = all.values().filter(|it| it.owner.thread == thread);
        let background = commands.filter(|it| {
            let buffer = it.output();
            !buffer.is_read && buffer.exit.is_none()
        });
        let shown = background.map(|it| BackgroundTerminal {
            id: it.id.to_string(),
            item: it.owner.item.clone(),
            command: it.owner.command.clone(),
            cwd: it.owner.cwd.clone(),
            pid: *it.pid.lock().unwrap_or_else(PoisonError::into_inner),
        });
        shown.collect()
    }

    /// Ends one or all of a thread's commands. Returns whether there was one.
    pub(crate) fn end(&self, thread: ThreadId, id: Option<&str>) -> bool {
        let shown = self.list(thread);
        let selected = shown.iter().filter(|it| id.is_none_or(|id| it.id == id));
        let mut is_found = false;
        for terminal in selected {
            let running = terminal.id.parse().ok().and_then(|id| self.get(thread, id));
            running.iter().for_each(|it| it.control.end());
            is_found |= running.is_some();
        }
        is_found
    }

    /// Ends all commands of a turn, waits for their exit, and returns those that still ran.
    pub(crate) async fn end_turn(&self, thread: ThreadId, turn: &TurnId) -> Vec<String> {
        let mut ended = Vec::new();
        self.all().retain(|_, it| {
            let is_its = it.owner.thread == thread && it.owner.turn == *turn;
            if is_its {
                ended.push(it.clone());
            }
            !is_its
        });
        ended.retain(|it| it.output().exit.is_none());
        ended.iter().for_each(|it| it.control.end());
        let all_over = async {
            for it in &ended {
                it.wait_ended().await;
            }
        };
        if timeout(ENDING, all_over).await.is_err() {
            tracing::error!(%thread, "commands did not end with their turn in time");
        }
        let names = ended.iter().map(|it| it.owner.command.clone());
        names.collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<RunningCommand>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCommand {
    fn output(&self) -> MutexGuard<'_, OutputBuffer> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_pid(&self, pid: u32) {
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
    }

    fn holds(&self) -> MutexGuard<'_, Vec<FileHold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a hold until the command has exited.
    pub(super) fn add_hold(&self, hold: Option<FileHold>) {
        let mut holds = self.holds();
        // An exited command needs no hold.
        if !*self.is_over.borrow() {
            holds.extend(hold);
        }
    }

    /// Sets the note for the model on how the command was started.
    pub(super) fn set_note(&self, note: Option<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    pub(super) fn start_note(&self) -> Option<String> {
        let note = self.note.lock();
        note.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the text that was typed and is not yet a complete line.
    pub(super) fn typed_line(&self) -> String {
        let begun = self
            .typed_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        begun.clone()
    }

    /// Sets the text that was typed and is not yet a complete line.
    pub(super) fn set_typed_line(&self, text: &str) {
        let mut begun = self
            .typed_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut begun);
    }

    /// Waits until the command has exited and its output is read.
    pub(super) async fn wait_ended(&self) {
        let mut is_over = self.is_over.subscribe();
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// Registers a listening call; returns false if another one listens.
    pub(super) fn begin_to_listen(&self) -> bool {
        !std::mem::replace(&mut self.output().is_read, true)
    }

    pub(super) fn stop_listening(&self) {
        self.output().is_read = false;
        self.space.notify_one();
    }

    /// Returns the output since the last call of this method.
    pub(super) fn next(&self) -> OutputChunk {
        let mut buffer = self.output();
        let piece = OutputChunk {
            text: std::mem::take(&mut buffer.text),
            lost: std::mem::take(&mut buffer.lost),
            exit: buffer.exit,
        };
        drop(buffer);
        self.space.notify_one();
        piece
    }

    /// Reads the output until the command exits, even while no call listens.
    pub(super) async fn watch(
        self: Arc<Self>,
        mut exit: Exit,
        stdout: Output,
        stderr: Option<Output>,
        sandboxed: ConfinedProcess,
    ) {
        let (ended, is_ended) = watch::channel(false);
        let end = async {
            let it = exit.ended().await;
            ended.send_replace(true);
            it.status.map(raddle_sandbox::ExitStatus::code)
        };
        let all_stderr = async {
            if let Some(stderr) = &stderr {
                self.pump(stderr, is_ended.clone()).await;
            }
        };
        let all_stdout = self.pump(&stdout, is_ended.clone());
        let (code, (), ()) = tokio::join!(end, all_stdout, all_stderr);
        drop(sandboxed);
        self.output().exit = Some(code);
        self.is_over.send_replace(true);
        self.holds().clear();
        self.changed.notify_one();
    }

    async fn pump(&self, output: &Output, mut is_ended: watch::Receiver<bool>) {
        let mut buffer = vec![0; PIECE_BYTES];
        // The first bytes of a character whose rest is still to come.
        let mut begun: Vec<u8> = Vec::new();
        loop {
            let count = tokio::select! {
                biased;
                read = output.read(&mut buffer) => read.unwrap_or(0),
                () = overdue(&mut is_ended) => 0,
            };
            if count == 0 {
                break self.push_output(&String::from_utf8_lossy(&begun)).await;
            }
            begun.extend_from_slice(&buffer[..count]);
            let whole = whole_characters(&begun);
            let text = String::from_utf8_lossy(&begun[..whole]).into_owned();
            begun.drain(..whole);
            self.push_output(&text).await;
        }
    }

    async fn push_output(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        while !self.output().try_push(text) {
            self.space.notified().await;
        }
        self.changed.notify_one();
    }
}

/// State of a command that decides which one is evicted at the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// It exited, and no call has read the exit code.
    Unread,
    /// It exited, and a call reads the exit code now.
    Read,
}

/// Chooses which exited command of a thread, oldest first, is dropped for a new one; fails if too
/// many run.
fn evict(commands: impl Iterator<Item = (u64, State)>) -> Result<Option<u64>, ToolCallError> {
    let (mut running, mut unread) = (0, Vec::new());
    for (id, state) in commands {
        match state {
            State::Runs => running += 1,
            State::Unread => unread.push(id),
            State::Read => {}
        }
    }
    if running >= RUNNING_MAX {
        return Err(ToolCallError::new(format!(
            "{RUNNING_MAX} commands of this thread still run; end some before you start more."
        )));
    }
    let is_full = unread.len() >= ENDED_MAX;
    Ok(unread.first().copied().filter(|_| is_full))
}

impl OutputBuffer {
    fn state(&self) -> State {
        match (self.exit, self.is_read) {
            (None, _) => State::Runs,
            (Some(_), false) => State::Unread,
            (Some(_), true) => State::Read,
        }
    }

    /// Appends text. Returns false if the buffer is full and a call is draining it.
    fn try_push(&mut self, text: &str) -> bool {
        let is_full = self.text.len() + text.len() > UNREAD_BYTES_MAX;
        if is_full && self.is_read {
            return false;
        }
        self.text.push_str(text);
        let excess = self.text.len().saturating_sub(UNREAD_BYTES_MAX);
        let excess = self.text.ceil_char_boundary(excess);
        self.text.drain(..excess);
        self.lost += excess;
        true
    }
}

/// Returns the number of bytes before an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => {
            // Invalid text may still end in the beginning of a character.
            let from = bytes.len().saturating_sub(3);
            let begins = bytes[from..].iter().rposition(|byte| *byte >= 0xC0);
            let cut = begins.map(|at| from + at).filter(|at| {
                let rest = std::str::from_utf8(&bytes[*at..]);
                rest.is_err_and(|error| error.error_len().is_none())
            });
            cut.unwrap_or(bytes.len())
        }
    }
}

/// Resolves when the command exited long enough ago that no output should be left.
async fn overdue(is_ended: &mut watch::Receiver<bool>) {
    if is_ended.wait_for(|is_ended| *is_ended).await.is_err() {
        return std::future::pending().await;
    }
    sleep(DRAIN).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only running commands count against the limit; of the exited ones not all are kept.
    #[test]
    fn limits_per_thread() {
        let check = |running: usize, unread: usize, expected: Result<Option<u64>, ()>| {
            let states = [(State::Unread, unread), (State::Runs, running)];
            let states = states.map(|(state, count)| std::iter::repeat_n(state, count));
            let commands = (1..).zip(
                [State::Read]
                    .into_iter()
                    .chain(states.into_iter().flatten()),
            );
            let actual = evict(commands).map_err(|_| ());
            assert_eq!(actual, expected, "{running} run, {unread} are over");
        };
        check(0, 0, Ok(None));
        check(RUNNING_MAX - 1, ENDED_MAX - 1, Ok(None));
        check(0, ENDED_MAX, Ok(Some(2)));
        check(RUNNING_MAX, 0, Err(()));
    }

    #[test]
    fn characters_are_not_split() {
        for (bytes, whole) in [
            (&b"abc"[..], 3),
            ("ab\u{e4}".as_bytes(), 4),
            (&"ab\u{e4}".as_bytes()[..3], 2),
            (&"\u{1f600}".as_bytes()[..3], 0),
            (b"\xff\xfe", 2),
            (b"\xffab\xc3", 3),
            (b"\xc3\xff", 2),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }
}
