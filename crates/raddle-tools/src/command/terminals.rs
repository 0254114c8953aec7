//! Commands that run, each until it is over or its turn is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_core::ports::BackgroundTerminal;
use raddle_core::{ItemId, ThreadId, TurnId};
use raddle_sandbox::{ConfinedProcess, Control, Exit, FileHold, Input, Output};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// How many commands may run for one thread.
const RUNNING_MAX: usize = 64;

/// How many that are over are kept for one thread until a call has heard of their end.
const ENDED_MAX: usize = 64;

/// How much is read at once.
const PIECE_BYTES: usize = 32 << 10;

/// How much output waits for a call that listens, and for the next one that will.
const UNREAD_BYTES_MAX: usize = 256 << 10;

/// How long output is waited for when nobody should be left to write any.
const DRAIN: Duration = Duration::from_secs(2);

/// How long the end of commands that are ended is waited for.
const ENDING: Duration = Duration::from_secs(5);

/// The commands that run, of all threads.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    all: Mutex<BTreeMap<u64, Arc<RunningCommand>>>,
    numbers: AtomicU64,
}

/// Whose a command is, and what it is.
#[derive(Clone, Debug)]
pub(super) struct CommandOwner {
    pub(super) thread: ThreadId,
    pub(super) turn: TurnId,
    pub(super) item: ItemId,
    pub(super) command: String,
    pub(super) cwd: String,
    /// Whether it runs outside the fence.
    pub(super) beyond: bool,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct RunningCommand {
    pub(super) id: u64,
    pub(super) owner: CommandOwner,
    pub(super) input: Option<Input>,
    pub(super) control: Control,
    pid: Mutex<Option<u32>>,
    output: Mutex<OutputBuffer>,
    /// What was typed and is no whole line yet.
    typed_line: Mutex<String>,
    /// Holds on the files that approvals of it, and of what was typed into it, are about.
    holds: Mutex<Vec<FileHold>>,
    /// What the model is told of how it was started.
    note: Mutex<Option<String>>,
    /// Something was heard, or it is over.
    pub(super) changed: Notify,
    /// There is room to hear more.
    space: Notify,
    is_over: watch::Sender<bool>,
}

/// What was printed and read by no call, and how it ended.
#[derive(Debug, Default)]
struct OutputBuffer {
    text: String,
    /// How many bytes in front of it were dropped.
    lost: usize,
    /// Whether a call listens. If one does the command waits for room; else the oldest is dropped.
    is_read: bool,
    exit: Option<Option<i32>>,
}

/// The next of what was printed.
pub(super) struct OutputChunk {
    pub(super) text: String,
    pub(super) lost: usize,
    /// Set once there is no more: how it ended, if that is known.
    pub(super) exit: Option<Option<i32>>,
}

impl Terminals {
    /// Makes room for one more, under a number of its own.
    pub(super) fn add(
        &self,
        whose: CommandOwner,
        input: Option<Input>,
        leash: Control,
    ) -> Result<Arc<RunningCommand>, String> {
        let mut all = self.all();
        let theirs = all.values().filter(|it| it.owner.thread == whose.thread);
        let gone = evict(theirs.map(|it| (it.id, it.output().state())))?;
        all.retain(|id, _| Some(*id) != gone);
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let running = Arc::new(RunningCommand {
            id,
            owner: whose,
            input,
            control: leash,
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

    /// Why a command that goes beyond the fence is not let there, if it is not: what runs in the fence could
    /// exchange what was allowed before it is run.
    pub(super) fn sandboxed_conflict(&self, whose: &CommandOwner) -> Option<String> {
        if !whose.beyond {
            return None;
        }
        let all = self.all();
        let theirs = all.values().filter(|it| it.owner.thread == whose.thread);
        let fenced = theirs.filter(|it| !it.owner.beyond && it.output().exit.is_none());
        let ids: Vec<String> = fenced.map(|it| it.id.to_string()).collect();
        (!ids.is_empty()).then(|| {
            format!(
                "nothing goes beyond the sandbox while commands of this thread run in it. End these sessions first, \
                 each with write_stdin and \\u0003, or wait for them, and call again: {}",
                ids.join(", ")
            )
        })
    }

    /// Whether a command of this thread holds files.
    pub(super) fn has_hold(&self, thread: ThreadId) -> bool {
        let all = self.all();
        let mut theirs = all.values().filter(|it| it.owner.thread == thread);
        theirs.any(|it| !it.holds().is_empty())
    }

    /// One that a call of this thread may listen to.
    pub(super) fn get(&self, thread: ThreadId, id: u64) -> Option<Arc<RunningCommand>> {
        let all = self.all();
        all.get(&id).filter(|it| it.owner.thread == thread).cloned()
    }

    pub(super) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    /// Those of a thread that no call listens to, oldest first.
    pub(crate) fn list(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        let all = self.all();
        let theirs = all.values().filter(|it| it.owner.thread == thread);
        let left = theirs.filter(|it| {
            let heard = it.output();
            !heard.is_read && heard.exit.is_none()
        });
        let shown = left.map(|it| BackgroundTerminal {
            id: it.id.to_string(),
            item: it.owner.item.clone(),
            command: it.owner.command.clone(),
            cwd: it.owner.cwd.clone(),
            pid: *it.pid.lock().unwrap_or_else(PoisonError::into_inner),
        });
        shown.collect()
    }

    /// Ends one of a thread's, or all. Whether there was one.
    pub(crate) fn end(&self, thread: ThreadId, id: Option<&str>) -> bool {
        let shown = self.list(thread);
        let meant = shown.iter().filter(|it| id.is_none_or(|id| it.id == id));
        let mut found = false;
        for terminal in meant {
            let running = terminal.id.parse().ok().and_then(|id| self.get(thread, id));
            running.iter().for_each(|it| it.control.end());
            found |= running.is_some();
        }
        found
    }

    /// Ends all of a turn's, waits for that, and names those that still ran.
    pub(crate) async fn end_turn(&self, thread: ThreadId, turn: &TurnId) -> Vec<String> {
        let mut left = Vec::new();
        self.all().retain(|_, it| {
            let is_its = it.owner.thread == thread && it.owner.turn == *turn;
            if is_its {
                left.push(it.clone());
            }
            !is_its
        });
        left.retain(|it| it.output().exit.is_none());
        left.iter().for_each(|it| it.control.end());
        let all_over = async {
            for it in &left {
                it.wait_ended().await;
            }
        };
        if timeout(ENDING, all_over).await.is_err() {
            tracing::error!(%thread, "commands did not end with their turn in time");
        }
        let names = left.iter().map(|it| it.owner.command.clone());
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

    pub(super) fn is_process(&self, pid: u32) {
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
    }

    fn holds(&self) -> MutexGuard<'_, Vec<FileHold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a hold until nothing of the command is left.
    pub(super) fn keep(&self, hold: Option<FileHold>) {
        let mut holds = self.holds();
        // A command that is over needs none.
        if !*self.is_over.borrow() {
            holds.extend(hold);
        }
    }

    /// From now on this is what the model is told of how it was started.
    pub(super) fn note(&self, note: Option<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    pub(super) fn noted(&self) -> Option<String> {
        let note = self.note.lock();
        note.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was typed and is no whole line yet.
    pub(super) fn typed_line(&self) -> String {
        let begun = self
            .typed_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        begun.clone()
    }

    /// From now on this is what was typed and is no whole line yet.
    pub(super) fn set_typed_line(&self, text: &str) {
        let mut begun = self
            .typed_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut begun);
    }

    /// Waits until nothing of it is left.
    pub(super) async fn wait_ended(&self) {
        let mut is_over = self.is_over.subscribe();
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// From now on a call listens; false if another one does.
    pub(super) fn begin_to_listen(&self) -> bool {
        !std::mem::replace(&mut self.output().is_read, true)
    }

    pub(super) fn stop_listening(&self) {
        self.output().is_read = false;
        self.space.notify_one();
    }

    /// What was printed since this was last asked.
    pub(super) fn next(&self) -> OutputChunk {
        let mut heard = self.output();
        let piece = OutputChunk {
            text: std::mem::take(&mut heard.text),
            lost: std::mem::take(&mut heard.lost),
            exit: heard.exit,
        };
        drop(heard);
        self.space.notify_one();
        piece
    }

    /// Listens to what it prints, also while no call wants to know, until nothing of it is left.
    pub(super) async fn watch(
        self: Arc<Self>,
        mut life: Exit,
        stdout: Output,
        stderr: Option<Output>,
        inside: ConfinedProcess,
    ) {
        let (ended, is_ended) = watch::channel(false);
        let end = async {
            let it = life.ended().await;
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
        drop(inside);
        self.output().exit = Some(code);
        self.is_over.send_replace(true);
        self.holds().clear();
        self.changed.notify_one();
    }

    async fn pump(&self, output: &Output, mut is_ended: watch::Receiver<bool>) {
        let mut buffer = vec![0; PIECE_BYTES];
        // The beginning of a letter whose end is still to come.
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
            let whole = whole_letters(&begun);
            let text = String::from_utf8_lossy(&begun[..whole]).into_owned();
            begun.drain(..whole);
            self.push_output(&text).await;
        }
    }

    async fn push_output(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        while !self.output().take(text) {
            self.space.notified().await;
        }
        self.changed.notify_one();
    }
}

/// Where a command is, as far as room for others goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// It is over, and no call has heard of that.
    Unread,
    /// It is over, and a call hears of that now.
    Read,
}

/// Which of a thread's commands, oldest first, is forgotten when one more is to run; or that none may.
fn evict(theirs: impl Iterator<Item = (u64, State)>) -> Result<Option<u64>, String> {
    let (mut running, mut unheard) = (0, Vec::new());
    for (id, state) in theirs {
        match state {
            State::Runs => running += 1,
            State::Unread => unheard.push(id),
            State::Read => {}
        }
    }
    if running >= RUNNING_MAX {
        return Err(format!(
            "{RUNNING_MAX} commands of this thread still run; end some before you start more."
        ));
    }
    let is_full = unheard.len() >= ENDED_MAX;
    Ok(unheard.first().copied().filter(|_| is_full))
}

impl OutputBuffer {
    fn state(&self) -> State {
        match (self.exit, self.is_read) {
            (None, _) => State::Runs,
            (Some(_), false) => State::Unread,
            (Some(_), true) => State::Read,
        }
    }

    /// Takes more, if there is room for it or nobody whom it could wait for.
    fn take(&mut self, text: &str) -> bool {
        let is_full = self.text.len() + text.len() > UNREAD_BYTES_MAX;
        if is_full && self.is_read {
            return false;
        }
        self.text.push_str(text);
        let over = self.text.len().saturating_sub(UNREAD_BYTES_MAX);
        let over = self.text.ceil_char_boundary(over);
        self.text.drain(..over);
        self.lost += over;
        true
    }
}

/// How many of these bytes are not the beginning of a letter that goes on behind them.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => {
            // What is no text at all may still end in the beginning of a letter.
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

/// Resolves when the command has been over for so long that no output should be left.
async fn overdue(is_ended: &mut watch::Receiver<bool>) {
    if is_ended.wait_for(|is_ended| *is_ended).await.is_err() {
        return std::future::pending().await;
    }
    sleep(DRAIN).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only those that run are in the way of others; of those that are over not all are kept.
    #[test]
    fn room_for_one_more() {
        let check = |running: usize, unheard: usize, wanted: Result<Option<u64>, ()>| {
            let states = [(State::Unread, unheard), (State::Runs, running)];
            let states = states.map(|(state, count)| std::iter::repeat_n(state, count));
            let theirs = (1..).zip(
                [State::Read]
                    .into_iter()
                    .chain(states.into_iter().flatten()),
            );
            let found = evict(theirs).map_err(|_| ());
            assert_eq!(found, wanted, "{running} run, {unheard} are over");
        };
        check(0, 0, Ok(None));
        check(RUNNING_MAX - 1, ENDED_MAX - 1, Ok(None));
        check(0, ENDED_MAX, Ok(Some(2)));
        check(RUNNING_MAX, 0, Err(()));
    }

    #[test]
    fn letters_are_kept_whole() {
        for (bytes, whole) in [
            (&b"abc"[..], 3),
            ("ab\u{e4}".as_bytes(), 4),
            (&"ab\u{e4}".as_bytes()[..3], 2),
            (&"\u{1f600}".as_bytes()[..3], 0),
            (b"\xff\xfe", 2),
            (b"\xffab\xc3", 3),
            (b"\xc3\xff", 2),
        ] {
            assert_eq!(whole_letters(bytes), whole, "{bytes:?}");
        }
    }
}
