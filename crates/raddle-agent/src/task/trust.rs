//! The question whether the folder of a thread is trusted, asked beside its turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::{
    ApprovalPolicy, AskTrust, Command, Event, ItemId, RequestNumber, RequestOpened,
    RequestResolved, Resolution, Thread, trust_answer,
};
use tracing::Instrument;

use super::Task;
use crate::asked_folders::FolderReservation;
use crate::tool_gate::after;

/// Turns of a session that ask, as long as the question gets no answer. After the last one the user
/// gets a warning.
const TURNS_MAX: u32 = 2;

/// The question of a thread in this session.
#[derive(Default)]
pub(super) struct TrustQuestion {
    /// Number of turns that asked.
    asked: u32,
    /// The open request, and its folder.
    open: Option<(RequestNumber, String)>,
    /// Whether this session asks no more.
    is_over: Arc<AtomicBool>,
    /// Reservation of the folder, from before the request is opened until it is resolved.
    reservation: Arc<Mutex<Option<FolderReservation>>>,
}

impl TrustQuestion {
    fn reserved(slot: &Mutex<Option<FolderReservation>>, it: Option<FolderReservation>) {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = it;
    }
}

impl Task {
    /// Adopts the open request of a former owner.
    pub(super) fn adopt_trust_question(&mut self) {
        let thread: &Thread = self.writer.thread();
        let mut open = thread.requests();
        let open = open.find_map(|(number, it)| Some((number, it.ask.trust_folder()?.to_owned())));
        if open.is_some() {
            self.trust.asked = 1;
        }
        self.trust.open = open;
    }

    /// Asks about the folder of the thread if its skills wait for the decision. The turn does not
    /// wait.
    pub(super) fn ask_trust(&self) {
        let thread = self.writer.thread();
        let settings = thread.settings();
        if !thread.withholds_skills()
            || !settings.approval.may_ask(ApprovalPolicy::SKILLS)
            || self.trust.open.is_some()
            || self.trust.is_over.load(Ordering::Relaxed)
        {
            return;
        }
        let slot = self.trust.reservation.clone();
        TrustQuestion::reserved(&slot, None);
        let is_over = self.trust.is_over.clone();
        let (shared, reporter) = (self.shared.clone(), self.reporter.downgrade());
        let cwd = settings.cwd.clone();
        let asking = async move {
            let Some(undecided) = shared.environment_reader.undecided(&cwd).await else {
                return;
            };
            let policy = shared.tool_gate.policy().await;
            let command = match policy.filter(|_| is_plain(&undecided.folder)) {
                Some(policy) => {
                    let Some(reservation) = shared.asked_folders.reserve(&undecided.folder) else {
                        return;
                    };
                    TrustQuestion::reserved(&slot, Some(reservation));
                    let after_ms = policy.unattended().after_ms();
                    Command::AskTrust(AskTrust {
                        item: ItemId::mint(),
                        folder: undecided.folder,
                        expires_at: after_ms.map(|ms| after(shared.now(), ms)),
                    })
                }
                None => {
                    is_over.store(true, Ordering::Relaxed);
                    Command::Warn(undecided.warning)
                }
            };
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(command).await;
            }
        };
        tokio::spawn(asking.instrument(self.turn_log.span()));
    }

    /// Follows the question, and stores its answer.
    pub(super) fn follow_trust(&mut self, event: &Event) {
        match event {
            Event::RequestOpened(it) => self.trust_asked(it),
            Event::RequestResolved(it) => self.trust_resolved(it),
            _ => {}
        }
    }

    fn trust_asked(&mut self, it: &RequestOpened) {
        if let Some(folder) = it.ask.trust_folder() {
            self.trust.asked += 1;
            self.trust.open = Some((it.request, folder.to_owned()));
        }
    }

    fn trust_resolved(&mut self, it: &RequestResolved) {
        let is_ours = |(request, _): &mut (RequestNumber, String)| *request == it.request;
        let Some((_, folder)) = self.trust.open.take_if(is_ours) else {
            return;
        };
        TrustQuestion::reserved(&self.trust.reservation, None);
        match (trust_answer(&it.resolution), &it.resolution) {
            (Some(is_trusted), Resolution::Answered { by, .. }) => {
                self.store_trust(folder, is_trusted, by.clone());
            }
            (_, Resolution::Expired {} | Resolution::Withdrawn {})
                if self.trust.asked < TURNS_MAX =>
            {
                return;
            }
            _ => self.warn_of_withheld_skills(),
        }
        self.trust.is_over.store(true, Ordering::Relaxed);
    }

    fn store_trust(&self, folder: String, is_trusted: bool, by: String) {
        let (thread, shared) = (self.id, self.shared.clone());
        let reporter = self.reporter.downgrade();
        let storing = async move {
            let stored = shared
                .environment_reader
                .decide(folder.clone(), is_trusted)
                .await;
            let Err(error) = stored else {
                return tracing::info!(%thread, by, folder, is_trusted, "the trust in a folder was stored");
            };
            tracing::warn!(%thread, by, folder, %error, "the trust in a folder was not stored");
            let warning = format!("Whether {folder} is trusted was not stored: {error}.");
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(Command::Warn(warning)).await;
            }
        };
        tokio::spawn(storing.instrument(self.turn_log.span()));
    }

    /// Warns the user that no decision was made, and how to make it.
    fn warn_of_withheld_skills(&self) {
        let (shared, reporter) = (self.shared.clone(), self.reporter.downgrade());
        let cwd = self.writer.thread().settings().cwd.clone();
        let warning = async move {
            let undecided = shared.environment_reader.undecided(&cwd).await;
            if let (Some(undecided), Some(reporter)) = (undecided, reporter.upgrade()) {
                let _ = reporter.send(Command::Warn(undecided.warning)).await;
            }
        };
        tokio::spawn(warning.instrument(self.turn_log.span()));
    }
}

/// Whether a path can be shown in a question: it has no character that a terminal would execute, or
/// that is invisible.
fn is_plain(path: &str) -> bool {
    path.chars()
        .all(|it| it.is_alphanumeric() || it.is_ascii_graphic() || it == ' ')
}
