//! The signals that end the demo early.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The offset that shells add to the number of the signal that ended a program.
const BY_SIGNAL: u8 = 128;

pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal, and returns the exit status for it.
    pub(super) async fn next(&mut self) -> ExitCode {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        let number = u8::try_from(kind.as_raw_value()).unwrap_or_default();
        ExitCode::from(BY_SIGNAL + number)
    }
}
