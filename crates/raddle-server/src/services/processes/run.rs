//! One process from its start to its end, and where its output goes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_protocol::Notification;
use raddle_sandbox::{Control, Exit, ExitReport, Output, StartError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::ProcessSlot;
use crate::session::Session;
use crate::wire_error::WireError;

/// How much is read, and told, at once.
const PIECE_BYTES: usize = 32 << 10;

/// What a notification needs beside the bytes: the longest name of a process and a few names of ours.
const FRAME_BYTES: usize = 2 << 10;

/// How much may wait for a client that is told of output. More of it would hold up answers.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// How much of one stream is kept for an answer, whatever the client asks for.
pub(crate) const CAPTURED_BYTES_MAX: usize = 16 << 20;

/// How much is kept for all answers of one connection.
const ALL_CAPTURED_BYTES_MAX: usize = 64 << 20;

/// How long output is waited for when nobody should be left to write any.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The exit code of what ran out of time, as `timeout` has it.
const TIMED_OUT: i32 = 124;

/// The exit code of what was ended before it ran, as of a program that is told to end.
const ENDED: i32 = 128 + 15;

/// The exit code of what was lost with its keeper.
const LOST: i32 = -1;

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// The standard one, or the terminal.
    Stdout,
    /// The one for errors.
    Stderr,
}

/// A piece of output on its way to a client.
#[derive(Debug)]
pub(crate) struct OutputDelta {
    pub(crate) stream: OutputStream,
    pub(crate) delta_base64: String,
    /// Something was cut off here, and nothing more of this stream will be told.
    pub(crate) cap_reached: bool,
}

/// What is to become of a process's output, and how long it may run.
pub(crate) struct OutputPlan {
    /// How a piece of output is told as it comes; without this it is kept.
    pub(crate) tell: Option<Box<dyn Fn(OutputDelta) -> Notification + Send + Sync>>,
    /// How many bytes of each stream are told or kept; all, if nothing is said.
    pub(crate) bytes_max: Option<u64>,
    /// Whether the process is ended when not all that is asked for can be kept.
    pub(crate) all_or_nothing: bool,
    /// How long it may run.
    pub(crate) time: Option<Duration>,
}

impl fmt::Debug for OutputPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("is_told", &self.tell.is_some())
            .field("bytes_max", &self.bytes_max)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// A process that was started. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct ProcessRun {
    pub(super) slot: ProcessSlot,
    pub(super) plan: OutputPlan,
    pub(super) stdout: Output,
    pub(super) stderr: Option<Output>,
    pub(super) control: Control,
    pub(super) exit: Exit,
    /// When its time is up, whatever it still waits for then.
    pub(super) until: Option<Instant>,
    /// Whether that was before it ran.
    pub(super) is_late: bool,
    /// Whether it was ended before it ran.
    pub(super) never_ran: bool,
}

/// What came of a process.
#[derive(Debug)]
pub(crate) struct ProcessOutcome {
    pub(crate) exit_code: i32,
    pub(crate) stdout: CapturedOutput,
    pub(crate) stderr: CapturedOutput,
    /// Whether output was given up on that was still open.
    pub(crate) drain_timed_out: bool,
}

impl ProcessRun {
    /// Waits until the process is to be ended before it could be started.
    pub(crate) async fn cut_short(&mut self) {
        tokio::select! {
            () = self.control.ending() => {}
            () = passed(self.until) => {
                self.is_late = true;
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
            () = passed(self.until) => {
                self.is_late = true;
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

    /// Waits until nothing of it is left and all it wrote was told or kept. Its name is free then.
    pub(crate) async fn finish(self) -> ProcessOutcome {
        let Self {
            slot: place,
            plan,
            stdout,
            stderr,
            control: leash,
            exit: life,
            until,
            is_late,
            never_ran,
        } = self;
        let session = &place.session;
        if never_ran {
            let nothing = || CapturedOutput::new(session.clone());
            return ProcessOutcome {
                exit_code: if is_late { TIMED_OUT } else { ENDED },
                stdout: nothing(),
                stderr: nothing(),
                drain_timed_out: false,
            };
        }
        let is_over = watch::Sender::new(false);
        let pump = |stream| Pump {
            stream,
            plan: &plan,
            control: &leash,
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
            end(life, &leash, TimeLimit { until, is_late }, &is_over),
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

/// When a process's time is up, and whether it was so already before it ran.
struct TimeLimit {
    until: Option<Instant>,
    is_late: bool,
}

/// Resolves at this moment, if there is one.
async fn passed(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of a process, and sees to it when its time is up. Gives its exit code.
async fn end(
    mut life: Exit,
    leash: &Control,
    limit: TimeLimit,
    is_over: &watch::Sender<bool>,
) -> i32 {
    let mut timed_out = limit.is_late;
    let ended = {
        let ended = life.ended();
        tokio::pin!(ended);
        tokio::select! {
            biased;
            ended = &mut ended => ended,
            () = passed(limit.until) => {
                timed_out = true;
                leash.end();
                ended.await
            }
        }
    };
    is_over.send_replace(true);
    let ExitReport {
        status: over,
        ended,
        names,
        survivors: left,
    } = ended;
    if !left.is_empty() {
        tracing::error!(
            ?left,
            "a command's processes could not be ended and go on; end them by hand"
        );
    }
    if ended > 0 {
        tracing::debug!(ended, ?names, "a command's processes had to be ended");
    }
    match over {
        _ if timed_out => TIMED_OUT,
        Some(over) => over.code(),
        None => {
            tracing::error!("a keeper was killed; what its command started may be left");
            LOST
        }
    }
}

/// Takes one stream of a process to its client.
struct Pump<'a> {
    stream: OutputStream,
    plan: &'a OutputPlan,
    control: &'a Control,
    session: &'a Session,
    is_over: watch::Receiver<bool>,
    captured: CapturedOutput,
}

impl Pump<'_> {
    /// Reads to the end, also what is neither told nor kept: a process must not wait for room. Says
    /// whether it came to the end.
    async fn run(mut self, output: &Output) -> (CapturedOutput, bool) {
        let asked = self.plan.bytes_max.unwrap_or(u64::MAX);
        let mut left = usize::try_from(asked).unwrap_or(usize::MAX);
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
            let taken = count.min(left);
            left -= taken;
            self.captured.cap_reached = taken < count;
            match &self.plan.tell {
                Some(tell) => self.tell(&**tell, &buffer[..taken]).await,
                None => self.keep(&buffer[..taken]),
            }
        }
    }

    /// Nothing is read while a client does not read, so the process waits and nothing piles up.
    async fn tell(&self, tell: &(dyn Fn(OutputDelta) -> Notification + Send + Sync), bytes: &[u8]) {
        self.session.outgoing.wait_below(AHEAD_BYTES_MAX).await;
        let length = bytes.len().div_ceil(3) * 4 + FRAME_BYTES;
        let hold = self.session.outgoing.reserve(length).await;
        self.session.tell(&tell(OutputDelta {
            stream: self.stream,
            delta_base64: STANDARD.encode(bytes),
            cap_reached: self.captured.cap_reached,
        }));
        drop(hold);
    }

    fn keep(&mut self, bytes: &[u8]) {
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

/// Resolves when the process has been over for so long that no output should be left.
async fn overdue(is_over: &mut watch::Receiver<bool>) {
    if is_over.wait_for(|is_over| *is_over).await.is_err() {
        return std::future::pending().await;
    }
    sleep(DRAIN_TIMEOUT).await;
}

/// What is kept of one stream.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    bytes: Vec<u8>,
    /// Whether something was cut off.
    pub(crate) cap_reached: bool,
    /// Whether there was more than is kept for anyone.
    pub(crate) is_too_much: bool,
    /// Whose it is: what is kept counts until this is dropped.
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

    /// Keeps these too, if there is room for them.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let all = &self.session.processes.buffered_bytes;
        let now = all.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if self.bytes.len() + bytes.len() > CAPTURED_BYTES_MAX || now > ALL_CAPTURED_BYTES_MAX {
            all.fetch_sub(bytes.len(), Ordering::Relaxed);
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// How many bytes are kept.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What is kept, as text; what is no text is marked in it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Drop for CapturedOutput {
    fn drop(&mut self) {
        let all = &self.session.processes.buffered_bytes;
        all.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}
