//! How a run ends: what is said of it, and the exit status.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) const USAGE: u8 = 2;
const FAILED: u8 = 1;
const UNFIT: u8 = 3;
const BUDGET: u8 = 4;
/// As a shell says it of a program that a signal ended.
const BY_SIGNAL: u8 = 128;
const SIGPIPE: u8 = 13;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunEnd {
    /// With this as its answer.
    Completed(Option<String>),
    /// With an answer that does not fit the schema.
    Unfit {
        why: String,
        message: Option<String>,
    },
    TurnFailed(String),
    Budget(String),
    /// By someone else.
    Interrupted,
    /// It did not come to an end of its own.
    Failed(String),
    Signal(u8),
    /// Nobody reads what is printed.
    Unread,
}

impl RunEnd {
    pub(super) fn failed(why: String) -> Self {
        Self::Failed(why)
    }

    pub(super) fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Completed(_) => 0,
            Self::TurnFailed(_) | Self::Interrupted | Self::Failed(_) => FAILED,
            Self::Unfit { .. } => UNFIT,
            Self::Budget(_) => BUDGET,
            Self::Signal(number) => BY_SIGNAL + number,
            Self::Unread => BY_SIGNAL + SIGPIPE,
        })
    }

    /// The one line about it, if it needs one.
    pub(super) fn line(&self) -> Option<String> {
        Some(match self {
            Self::Completed(_) | Self::Signal(_) | Self::Unread => return None,
            Self::Unfit { why, .. } => format!("the answer does not fit the schema: {why}"),
            Self::TurnFailed(why) => format!("the turn failed: {why}"),
            Self::Budget(why) => format!("the turn ended at its budget: {why}"),
            Self::Interrupted => "the turn was interrupted by someone else".to_owned(),
            Self::Failed(why) => why.clone(),
        })
    }

    /// The answer, also one that does not fit: it may tell why.
    pub(super) fn answer(&self) -> Option<&str> {
        match self {
            Self::Completed(message) | Self::Unfit { message, .. } => message.as_deref(),
            _ => None,
        }
    }
}

/// The signals that end a run.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The number of the next one.
    pub(super) async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}
