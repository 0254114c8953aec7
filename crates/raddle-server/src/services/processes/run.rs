//! One process from its start to its end, and the path of its output.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_protocol::Notification;
use raddle_sandbox::{ChildProcess, Control, Exit, ExitReport, Output, StartError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::table::ProcessName;
use crate::session::Session;
use crate::wire_error::WireError;

/// Bytes read, and sent, at once.
const PIECE_BYTES: usize = 32 << 10;

/// Size of a notification beside the bytes: the longest name of a process and a few member names.
const FRAME_BYTES: usize = 2 << 10;

/// Limit: output of processes that waits for a client; beyond it, the server stops reading the
/// process.
///
/// More of it would delay responses.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// Limit: captured output of one stream of a process (64 MiB for all of one connection); beyond it,
/// `command/exec` fails with -32600; `process/exited` reports that the cap was reached.
pub(crate) const CAPTURED_BYTES_MAX: usize = 16 << 20;

/// The maximum bytes stored for all responses of one connection.
const ALL_CAPTURED_BYTES_MAX: usize = 64 << 20;

/// How long to wait for output after all processes have ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The exit code of a process that timed out, as `timeout` has it.
const TIMED_OUT: i32 = 124;

/// The exit code of a process that was ended before it ran, as after SIGTERM.
const ENDED: i32 = 128 + 15;

/// The exit code of a process that was lost with its keeper.
const LOST: i32 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// Standard output, or the terminal.
    Stdout,
    Stderr,
}

/// A piece of output on its way to a client.
#[derive(Debug)]
pub(crate) struct OutputDelta {
    pub(crate) stream: OutputStream,
    pub(crate) delta_base64: String,
    /// Whether output was truncated here; no more of this stream is sent then.
    pub(crate) cap_reached: bool,
}

/// Destination and limits of a process's output, and its timeout.
pub(crate) struct OutputPlan {
    /// Makes the notification for a piece of output as it arrives; without it, output is stored.
    pub(crate) tell: Option<Box<dyn Fn(OutputDelta) -> Notification + Send + Sync>>,
    /// The maximum bytes of each stream to send or store; without it, all.
    pub(crate) bytes_max: Option<u64>,
    /// Whether the process is ended when its output cannot be stored completely.
    pub(crate) all_or_nothing: bool,
    /// Timeout of the process.
    pub(crate) time: Option<Duration>,
}

impl fmt::Debug for OutputPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputPlan")
            .field("is_told", &self.tell.is_some())
            .field("bytes_max", &self.bytes_max)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// Registration of a process with its connection, until it is dropped.
#[derive(Debug)]
struct ProcessSlot {
    session: Arc<Session>,
    name: ProcessName,
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        self.session.processes.remove(&self.name);
    }
}

/// A process that was started. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct ProcessRun {
    slot: ProcessSlot,
    plan: OutputPlan,
    stdout: Output,
    stderr: Option<Output>,
    control: Control,
    exit: Exit,
    /// The deadline, whatever the process waits for then.
    deadline: Option<Instant>,
    /// Whether the deadline passed before it ran.
    timed_out_before_start: bool,
    /// Whether it was ended before it ran.
    never_ran: bool,
}

/// Outcome of a process.
#[derive(Debug)]
pub(crate) struct ProcessOutcome {
    pub(crate) exit_code: i32,
    pub(crate) stdout: CapturedOutput,
    pub(crate) stderr: CapturedOutput,
    /// Whether the server stopped reading output that was still open.
    pub(crate) drain_timed_out: bool,
}

impl ProcessRun {
    /// Registers and starts a process, if its name is free. From then on the client can write to it
    /// and end it.
    pub(crate) fn begin<T, F>(
        session: &Arc<Session>,
        name: ProcessName,
        plan: OutputPlan,
        start: F,
    ) -> Result<(Self, T), WireError>
    where
        F: FnOnce() -> io::Result<(ChildProcess, T)>,
    {
        let (process, rest) = session.processes.start(&name, start)?;
        let ChildProcess {
            input: _,
            stdout,
            stderr,
            control,
            exit,
        } = process;
        let slot = ProcessSlot {
            session: session.clone(),
            name,
        };
        // A deadline that overflows never comes.
        let deadline = plan.time.and_then(|time| Instant::now().checked_add(time));
        let run = Self {
            slot,
            plan,
            stdout,
            stderr,
            control,
            exit,
            deadline,
            timed_out_before_start: false,
            never_ran: false,
        };
        Ok((run, rest))
    }

    /// Waits until the process is to be ended before it could be started.
    pub(crate) async fn cut_short(&mut self) {
        tokio::select! {
            () = self.control.ending() => {}
            () = deadline_passed(self.deadline) => {
                self.timed_out_before_start = true;
                self.control.end();
            }
        }
    }

    /// Waits until the process runs, or was ended before it could.
    pub(crate) async fn started(&mut self) -> Result<(), WireError> {
        let started = self.exit.started();
        tokio::pin!(started);
        let started = tokio::select! {
            biased;
            started = &mut started => started,
            () = deadline_passed(self.deadline) => {
                self.timed_out_before_start = true;
                self.control.end();
                started.await
            }
        };
        match started {
            Ok(_pid) => Ok(()),
            Err(StartError::Ended) => {
                self.never_ran = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the process has ended and all its output was sent or stored. Its name is free
    /// then.
    pub(crate) async fn finish(self) -> ProcessOutcome {
        let Self {
            slot,
            plan,
            stdout,
            stderr,
            control,
            exit,
            deadline,
            timed_out_before_start,
            never_ran,
        } = self;
        let session = &slot.session;
        if never_ran {
            let empty = || CapturedOutput::new(session.clone());
            return ProcessOutcome {
                exit_code: if timed_out_before_start {
                    TIMED_OUT
                } else {
                    ENDED
                },
                stdout: empty(),
                stderr: empty(),
                drain_timed_out: false,
            };
        }
        let is_over = watch::Sender::new(false);
        let pump = |stream| Pump {
            stream,
            plan: &plan,
            control: &control,
            session,
            is_over: is_over.subscribe(),
            captured: CapturedOutput::new(session.clone()),
        };
        let all_stderr = async {
            match &stderr {
                Some(stderr) => pump(OutputStream::Stderr).run(stderr).await,
                None => (CapturedOutput::new(session.clone()), true),
            }
        };
        let (exit_code, (stdout, is_whole), (stderr, is_whole_too)) = tokio::join!(
            end(
                exit,
                &control,
                TimeLimit {
                    deadline,
                    timed_out_before_start
                },
                &is_over,
                session.number
            ),
            pump(OutputStream::Stdout).run(&stdout),
            all_stderr
        );
        ProcessOutcome {
            exit_code,
            stdout,
            stderr,
            drain_timed_out: !(is_whole && is_whole_too),
        }
    }
}

/// Deadline of a process, and whether it passed before the process ran.
struct TimeLimit {
    deadline: Option<Instant>,
    timed_out_before_start: bool,
}

/// Resolves at this moment, if there is one.
async fn deadline_passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of a process, and ends it at the deadline. Returns its exit code.
async fn end(
    mut exit: Exit,
    control: &Control,
    limit: TimeLimit,
    is_over: &watch::Sender<bool>,
    connection: u64,
) -> i32 {
    let mut timed_out = limit.timed_out_before_start;
    let report = {
        let ending = exit.ended();
        tokio::pin!(ending);
        tokio::select! {
            biased;
            report = &mut ending => report,
            () = deadline_passed(limit.deadline) => {
                timed_out = true;
                control.end();
                ending.await
            }
        }
    };
    is_over.send_replace(true);
    let ExitReport {
        status,
        killed: ended,
        names,
        survivors,
    } = report;
    if !survivors.is_empty() {
        tracing::error!(
            connection,
            ?survivors,
            "processes of a command could not be ended and still run; end them by hand"
        );
    }
    if ended > 0 {
        tracing::debug!(ended, ?names, "a command's processes had to be ended");
    }
    match status {
        _ if timed_out => TIMED_OUT,
        Some(status) => status.code(),
        None => {
            tracing::error!(
                connection,
                "a keeper was killed; processes of its command may still run"
            );
            LOST
        }
    }
}

/// Carries one stream of a process to its client.
struct Pump<'a> {
    stream: OutputStream,
    plan: &'a OutputPlan,
    control: &'a Control,
    session: &'a Session,
    is_over: watch::Receiver<bool>,
    captured: CapturedOutput,
}

impl Pump<'_> {
    /// Reads to the end, also output that is neither sent nor stored: a process must not block on a
    /// full pipe. Returns whether it reached the end.
    async fn run(mut self, output: &Output) -> (CapturedOutput, bool) {
        let bytes_max = self.plan.bytes_max.unwrap_or(u64::MAX);
        let mut remaining = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let count = tokio::select! {
                biased;
                read = output.read(&mut buffer) => read.unwrap_or(0),
                () = overdue(&mut self.is_over) => return (self.captured, false),
            };
            if count == 0 {
                return (self.captured, true);
            }
            if self.captured.cap_reached || self.captured.is_too_much {
                continue;
            }
            let accepted = count.min(remaining);
            remaining -= accepted;
            self.captured.cap_reached = accepted < count;
            match &self.plan.tell {
                Some(tell) => self.tell(&**tell, &buffer[..accepted]).await,
                None => self.store(&buffer[..accepted]),
            }
        }
    }

    /// Sends a piece. Backpressure: reads nothing while the client does not read, so the process
    /// waits.
    async fn tell(&self, tell: &(dyn Fn(OutputDelta) -> Notification + Send + Sync), bytes: &[u8]) {
        self.session.outgoing.wait_below(AHEAD_BYTES_MAX).await;
        let length = bytes.len().div_ceil(3) * 4 + FRAME_BYTES;
        let hold = self.session.outgoing.reserve(length).await;
        self.session.notify(&tell(OutputDelta {
            stream: self.stream,
            delta_base64: STANDARD.encode(bytes),
            cap_reached: self.captured.cap_reached,
        }));
        drop(hold);
    }

    fn store(&mut self, bytes: &[u8]) {
        if self.captured.add(bytes) {
            return;
        }
        self.captured.cap_reached = true;
        self.captured.is_too_much = true;
        if self.plan.all_or_nothing {
            self.control.end();
        }
    }
}

/// Resolves when the process has ended for so long that no output should be left.
async fn overdue(is_over: &mut watch::Receiver<bool>) {
    if is_over.wait_for(|is_over| *is_over).await.is_err() {
        return std::future::pending().await;
    }
    sleep(DRAIN_TIMEOUT).await;
}

/// Stored output of one stream.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    bytes: Vec<u8>,
    /// Whether output was truncated.
    pub(crate) cap_reached: bool,
    /// Whether there was more than may be stored for any client.
    pub(crate) is_too_much: bool,
    /// The owner: the bytes count against its limit until this is dropped.
    session: Arc<Session>,
}

impl CapturedOutput {
    fn new(session: Arc<Session>) -> Self {
        Self {
            bytes: Vec::new(),
            cap_reached: false,
            is_too_much: false,
            session,
        }
    }

    /// Stores these bytes too, if there is capacity for them.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let total = &self.session.processes.buffered_bytes;
        let total_bytes = total.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if self.bytes.len() + bytes.len() > CAPTURED_BYTES_MAX
            || total_bytes > ALL_CAPTURED_BYTES_MAX
        {
            total.fetch_sub(bytes.len(), Ordering::Relaxed);
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the output as text; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Drop for CapturedOutput {
    fn drop(&mut self) {
        let total = &self.session.processes.buffered_bytes;
        total.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}
