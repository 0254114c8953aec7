//! Hooks on the events of a thread: their input, and the effect of their decisions.

mod input;
mod input_notices;
mod tool_call;

pub(crate) use input::SessionStart;
pub(crate) use input_notices::InputNotices;

use std::sync::Arc;

use raddle_core::ports::{
    BoxFuture, HookCall, HookEntry, HookEvent, HookLayer, HookObserver, HookOutcome, HookRun,
    HookRunStatus as RunStatus, Hooks,
};
use raddle_core::{
    Command, HookPiece, HookPrompt, ItemBody, ItemId, ItemUpdate, Settings, ThreadId, TurnId,
    UpdateItem,
};
use raddle_protocol::{
    HookCompletedNotification, HookEventName, HookExecutionMode, HookHandlerType, HookOutputEntry,
    HookOutputEntryKind, HookRunStatus, HookRunSummary, HookScope, HookSource,
    HookStartedNotification, Notification, WarningNotification,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// Capacity of the channel for notifications of hooks; hooks wait when it is full.
pub(crate) const NOTICES: usize = 64;

/// Runs the hooks of a thread, and notifies its subscribers.
#[derive(Clone)]
pub(crate) struct HookRunner {
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) notices: Arc<dyn NoticeSink>,
    pub(crate) thread: ThreadId,
    /// `None` outside a turn.
    pub(crate) turn: Option<TurnId>,
}

/// Sends notifications to the task of a thread.
pub(crate) trait NoticeSink: Send + Sync {
    /// Waits for capacity. The thread may be unloaded by now.
    fn send(&self, notification: Notification) -> BoxFuture<'_, ()>;
}

impl NoticeSink for mpsc::Sender<Box<Notification>> {
    fn send(&self, notification: Notification) -> BoxFuture<'_, ()> {
        let notification = Box::new(notification);
        Box::pin(async move { drop(mpsc::Sender::send(self, notification).await) })
    }
}

impl HookRunner {
    /// Runs the hooks of an event.
    async fn run(
        &self,
        event: HookEvent,
        subjects: Vec<String>,
        settings: &Settings,
        input: Map<String, Value>,
    ) -> HookOutcome {
        if self.hooks.is_empty() {
            return HookOutcome::default();
        }
        let call = HookCall {
            thread: self.thread,
            turn: self.turn.clone(),
            event,
            subjects,
            settings: settings.clone(),
            input,
        };
        self.hooks.run(call, self).await
    }

    /// Runs the hooks on the end of an answer. Returns the text with which the turn continues.
    pub(crate) async fn stop(
        &self,
        settings: &Settings,
        last_message: Option<String>,
        is_continued: bool,
    ) -> Option<HookPrompt> {
        let mut input = Map::new();
        input.insert("stop_hook_active".to_owned(), is_continued.into());
        input.insert("last_assistant_message".to_owned(), last_message.into());
        let outcome = self.run(HookEvent::Stop, Vec::new(), settings, input).await;
        let text = tool_call::reason(outcome.ruling)?;
        let mut pieces = outcome.context;
        pieces.push(HookPiece {
            run: outcome.ruled_by.unwrap_or_default(),
            text,
        });
        Some(HookPrompt { pieces })
    }

    /// Runs the hooks around a summary of the history. Returns the reason of a rejection.
    pub(crate) async fn compaction(
        &self,
        event: HookEvent,
        settings: &Settings,
        trigger: &str,
    ) -> Option<String> {
        let mut input = Map::new();
        input.insert("trigger".to_owned(), trigger.into());
        let subjects = vec![trigger.to_owned()];
        let outcome = self.run(event, subjects, settings, input).await;
        tool_call::reason(outcome.ruling)
    }
}

impl HookObserver for HookRunner {
    fn observe(&self, run: HookRun) -> BoxFuture<'_, ()> {
        let notification = notification(self.thread, self.turn.clone(), run);
        self.notices.send(notification)
    }

    fn warn(&self, message: String) -> BoxFuture<'_, ()> {
        let warning = WarningNotification {
            thread_id: Some(self.thread),
            message,
            budget: None,
        };
        self.notices.send(warning.into())
    }
}

/// Returns the report of text that hooks add during a model call.
pub(crate) fn add_prompt(call: u32, prompt: HookPrompt) -> Command {
    let body = Box::new(ItemBody::HookPrompt(prompt));
    let update = ItemUpdate::Completed(ItemId::mint(), body, None);
    Command::UpdateItem(UpdateItem { call, update })
}

/// Converts a run to a notification.
fn notification(thread_id: ThreadId, turn_id: Option<TurnId>, run: HookRun) -> Notification {
    let HookRun {
        id,
        event,
        display_order,
        layer,
        source_path,
        status_message,
        started_at,
        end,
    } = run;
    let mut run = HookRunSummary {
        id,
        display_order,
        entries: Vec::new(),
        event_name: HookEventName::from(event.wire_name()),
        execution_mode: HookExecutionMode::Sync,
        handler_type: match layer {
            HookLayer::System | HookLayer::User => HookHandlerType::Command,
            // Its tools are calls of MCP tools on the wire, too.
            HookLayer::Plugin => HookHandlerType::McpTool,
        },
        scope: match event {
            HookEvent::SessionStart => HookScope::Thread,
            _ => HookScope::Turn,
        },
        source_path,
        started_at,
        status: HookRunStatus::Running,
        completed_at: None,
        duration_ms: None,
        source: match layer {
            HookLayer::System => HookSource::System,
            HookLayer::User => HookSource::User,
            HookLayer::Plugin => HookSource::Plugin,
        },
        status_message,
    };
    let Some(end) = end else {
        let started = HookStartedNotification {
            thread_id,
            turn_id,
            run,
        };
        return started.into();
    };
    run.completed_at = Some(end.completed_at);
    run.duration_ms = Some(end.duration_ms);
    run.status = match end.status {
        RunStatus::Completed => HookRunStatus::Completed,
        RunStatus::Failed => HookRunStatus::Failed,
        RunStatus::Blocked => HookRunStatus::Blocked,
    };
    run.entries = end.entries.into_iter().map(entry).collect();
    let completed = HookCompletedNotification {
        thread_id,
        turn_id,
        run,
    };
    completed.into()
}

fn entry(entry: HookEntry) -> HookOutputEntry {
    let (kind, text) = match entry {
        HookEntry::Warning(text) => (HookOutputEntryKind::Warning, text),
        HookEntry::Feedback(text) => (HookOutputEntryKind::Feedback, text),
        HookEntry::Context(text) => (HookOutputEntryKind::Context, text),
        HookEntry::Error(text) => (HookOutputEntryKind::Error, text),
    };
    HookOutputEntry { kind, text }
}
