//! Streams a command's output to the item of a call, and truncates it for the model.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{BoxFuture, ReportSink};
use raddle_core::{AppendText, Command, ItemId, ItemPart};
use tokio::time::{Instant, sleep_until};

use super::terminals::RunningCommand;
use crate::truncation::TruncatedOutput;

/// Maximum bytes of output that the item of a call shows.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// Reason why a call stopped listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenEnd {
    /// The command exited, with this code if it is known.
    Exited(Option<i32>),
    /// The command still runs.
    Running,
    /// The command was ended because the call was stopped.
    Stopped,
    /// The command was ended because of its timeout.
    TimedOut,
}

/// Action on a command when the call's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTimeout {
    Detach,
    End,
}

/// A call that listens to a command. Dropping it ends the command, unless `listen` has returned or
/// it was detached.
pub(super) struct OutputListener<'a> {
    pub(super) running: Arc<RunningCommand>,
    pub(super) item: &'a ItemId,
    pub(super) reports: &'a dyn ReportSink,
    pub(super) output: TruncatedOutput,
    shown: usize,
    hidden: usize,
    is_detached: bool,
}

impl<'a> OutputListener<'a> {
    /// Returns `None` if another call already listens.
    pub(super) fn new(
        running: Arc<RunningCommand>,
        item: &'a ItemId,
        reports: &'a dyn ReportSink,
        tokens: usize,
    ) -> Option<Self> {
        running.begin_to_listen().then(|| Self {
            running,
            item,
            reports,
            output: TruncatedOutput::new(tokens),
            shown: 0,
            hidden: 0,
            is_detached: false,
        })
    }

    /// Listens until the command exits, the time is up, or the call is stopped.
    pub(super) async fn listen(
        &mut self,
        time: Duration,
        then: OnTimeout,
        stop_signal: &mut BoxFuture<'static, ()>,
    ) -> ListenEnd {
        let until = Instant::now() + time;
        let mut ending = None;
        let end = loop {
            let piece = self.running.next();
            self.append(&piece.text, piece.lost).await;
            if let Some(code) = piece.exit {
                break ending.unwrap_or(ListenEnd::Exited(code));
            }
            let running = &self.running;
            tokio::select! {
                biased;
                () = &mut *stop_signal, if ending.is_none() => {
                    running.control.end();
                    ending = Some(ListenEnd::Stopped);
                }
                () = running.changed.notified() => {}
                () = sleep_until(until), if ending.is_none() => match then {
                    OnTimeout::Detach => break ListenEnd::Running,
                    OnTimeout::End => {
                        running.control.end();
                        ending = Some(ListenEnd::TimedOut);
                    }
                },
            }
        };
        self.is_detached = true;
        if self.hidden > 0 {
            let note = format!(
                "\n[… {} bytes more were printed and are not shown …]\n",
                self.hidden
            );
            self.show(&note).await;
        }
        end
    }

    /// Keeps the command running when this is dropped.
    pub(super) fn detach(&mut self) {
        self.is_detached = true;
    }

    async fn append(&mut self, text: &str, lost: usize) {
        if lost > 0 {
            let note = format!("[… {lost} bytes that were printed meanwhile are left out …]\n");
            self.show(&note).await;
            self.output.add(&note);
        }
        if text.is_empty() {
            return;
        }
        self.output.add(text);
        let capacity = SHOWN_BYTES_MAX.saturating_sub(self.shown);
        let (shown, hidden) = text.split_at(text.floor_char_boundary(capacity));
        self.shown += shown.len();
        // After a gap, further text would appear in the wrong place.
        if !hidden.is_empty() {
            self.shown = SHOWN_BYTES_MAX;
        }
        self.hidden += hidden.len();
        self.show(shown).await;
    }

    async fn show(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let append = AppendText {
            item: self.item.clone(),
            part: ItemPart::Printed,
            text: text.to_owned(),
        };
        self.reports.report(Command::AppendText(append)).await;
    }
}

impl Drop for OutputListener<'_> {
    fn drop(&mut self) {
        if !self.is_detached {
            self.running.control.end();
        }
        self.running.stop_listening();
    }
}
