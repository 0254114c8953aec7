//! A call listens to a command: what it prints is shown as it comes, and cut for the model.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{BoxFuture, ReportSink};
use raddle_core::{AppendText, Command, ItemId, ItemPart};
use tokio::time::{Instant, sleep_until};

use super::terminals::RunningCommand;
use crate::truncation::TruncatedOutput;

/// How much of what a call printed its item shows.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// How a call stopped listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListenEnd {
    /// The command is over, with this code if that is known.
    Exited(Option<i32>),
    /// It goes on.
    Running,
    /// It was ended, because the call was stopped.
    Stopped,
    /// It was ended, because its time was up.
    TimedOut,
}

/// What happens when a call's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTimeout {
    Detach,
    End,
}

/// A call that listens to a command. Unless it is left in good order the command ends with it.
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
    /// Nothing if another call listens.
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

    /// Listens until the command is over, the call's time is up, or it is stopped.
    pub(super) async fn listen(
        &mut self,
        time: Duration,
        then: OnTimeout,
        stopped: &mut BoxFuture<'static, ()>,
    ) -> ListenEnd {
        let until = Instant::now() + time;
        let mut ending = None;
        let left = loop {
            let piece = self.running.next();
            self.append(&piece.text, piece.lost).await;
            if let Some(code) = piece.exit {
                break ending.unwrap_or(ListenEnd::Exited(code));
            }
            let running = &self.running;
            tokio::select! {
                biased;
                () = &mut *stopped, if ending.is_none() => {
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
        left
    }

    /// The command goes on without it.
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
        let room = SHOWN_BYTES_MAX.saturating_sub(self.shown);
        let (shown, hidden) = text.split_at(text.floor_char_boundary(room));
        self.shown += shown.len();
        // Once something is missing, what follows would stand in the wrong place.
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
        let grown = AppendText {
            item: self.item.clone(),
            part: ItemPart::Printed,
            text: text.to_owned(),
        };
        self.reports.report(Command::AppendText(grown)).await;
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
