//! A call listens to a command: what it prints is shown as it comes, and cut for the model.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{Reports, Waiting};
use raddle_core::{AppendText, Command, ItemId, Part};
use tokio::time::{Instant, sleep_until};

use super::running::Running;
use crate::cut::Cut;

/// How much of what a call printed its item shows.
const SHOWN_BYTES_MAX: usize = 1 << 20;

/// How a call stopped listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The command is over, with this code if that is known.
    Over(Option<i32>),
    /// It goes on.
    Running,
    /// It was ended, because the call was stopped.
    Stopped,
    /// It was ended, because its time was up.
    Late,
}

/// What happens when a call's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Leave,
    End,
}

/// A call that listens to a command. Unless it is left in good order the command ends with it.
pub(super) struct Listener<'a> {
    pub(super) running: Arc<Running>,
    pub(super) item: &'a ItemId,
    pub(super) reports: &'a dyn Reports,
    pub(super) cut: Cut,
    shown: usize,
    hidden: usize,
    is_left: bool,
}

impl<'a> Listener<'a> {
    /// Nothing if another call listens.
    pub(super) fn new(
        running: Arc<Running>,
        item: &'a ItemId,
        reports: &'a dyn Reports,
        tokens: usize,
    ) -> Option<Self> {
        running.begin_to_listen().then(|| Self {
            running,
            item,
            reports,
            cut: Cut::new(tokens),
            shown: 0,
            hidden: 0,
            is_left: false,
        })
    }

    /// Listens until the command is over, the call's time is up, or it is stopped.
    pub(super) async fn listen(
        &mut self,
        time: Duration,
        then: Then,
        stopped: &mut Waiting<'static, ()>,
    ) -> Left {
        let until = Instant::now() + time;
        let mut ending = None;
        let left = loop {
            let piece = self.running.next();
            self.hear(&piece.text, piece.lost).await;
            if let Some(code) = piece.over {
                break ending.unwrap_or(Left::Over(code));
            }
            let running = &self.running;
            tokio::select! {
                biased;
                () = &mut *stopped, if ending.is_none() => {
                    running.leash.end();
                    ending = Some(Left::Stopped);
                }
                () = running.news.notified() => {}
                () = sleep_until(until), if ending.is_none() => match then {
                    Then::Leave => break Left::Running,
                    Then::End => {
                        running.leash.end();
                        ending = Some(Left::Late);
                    }
                },
            }
        };
        self.is_left = true;
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
    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }

    async fn hear(&mut self, text: &str, lost: usize) {
        if lost > 0 {
            let note = format!("[… {lost} bytes that were printed meanwhile are left out …]\n");
            self.show(&note).await;
            self.cut.add(&note);
        }
        if text.is_empty() {
            return;
        }
        self.cut.add(text);
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
            part: Part::Printed,
            text: text.to_owned(),
        };
        self.reports.report(Command::AppendText(grown)).await;
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        if !self.is_left {
            self.running.leash.end();
        }
        self.running.stop_listening();
    }
}
