//! The end of a run: its message and its exit status.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status for invalid arguments.
pub const USAGE: u8 = 2;
const FAILED: u8 = 1;
const UNFIT: u8 = 3;
const BUDGET: u8 = 4;
/// The offset that shells add to the number of the signal that ended a program.
const BY_SIGNAL: u8 = 128;
const SIGPIPE: u8 = 13;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunEnd {
    /// The turn completed with this answer.
    Completed(Option<String>),
    /// The answer does not match the schema.
    Unfit {
        why: String,
        message: Option<String>,
    },
    TurnFailed(String),
    Budget(String),
    /// By another client.
    Interrupted,
    /// The run ended without a result of the turn.
    Failed(String),
    /// The server did not start, and its own message says why.
    NoServer,
    Signal(u8),
    /// The reader of stdout has closed it.
    Unread,
}

impl RunEnd {
    pub(crate) fn failed(why: String) -> Self {
        Self::Failed(why)
    }

    pub(crate) fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Completed(_) => 0,
            Self::TurnFailed(_) | Self::Interrupted | Self::Failed(_) | Self::NoServer => FAILED,
            Self::Unfit { .. } => UNFIT,
            Self::Budget(_) => BUDGET,
            Self::Signal(number) => BY_SIGNAL + number,
            Self::Unread => BY_SIGNAL + SIGPIPE,
        })
    }

    /// The one line that reports the end, if it needs one.
    pub(crate) fn line(&self) -> Option<String> {
        Some(match self {
            Self::Completed(_) | Self::Signal(_) | Self::Unread | Self::NoServer => return None,
            Self::Unfit { why, .. } => format!("the answer does not fit the schema: {why}"),
            Self::TurnFailed(why) => format!("the turn failed: {why}"),
            Self::Budget(why) => format!("the turn ended at its budget: {why}"),
            Self::Interrupted => "another client interrupted the turn".to_owned(),
            Self::Failed(why) => why.clone(),
        })
    }

    /// Returns the answer, even one that does not match the schema: it may explain why.
    pub(crate) fn answer(&self) -> Option<&str> {
        match self {
            Self::Completed(message) | Self::Unfit { message, .. } => message.as_deref(),
            _ => None,
        }
    }
}

/// The signals that end a run.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal and returns its number.
    pub(crate) async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}
