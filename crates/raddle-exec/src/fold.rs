//! Folds the server's notifications of a turn into events and an outcome. Pure.

use std::collections::{HashMap, HashSet};

use raddle_protocol::{
    CodexErrorInfo, ItemId, Notification, ThreadId, ThreadItem, Turn, TurnError, TurnId,
    TurnPlanStep, TurnStatus,
};

use super::events::{ErrorText, Event, ExecItem, ExecItemBody, Todo, Usage};
use super::wire_items::{self, ItemReport};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TurnOutcome {
    /// With this as its last message.
    Completed(Option<String>),
    Failed(Failure),
    /// A client interrupted it.
    Interrupted,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Whether a limit of `--budget` or the configuration was reached.
    pub(crate) is_budget: bool,
}

/// The state of one run: a turn of a thread.
#[derive(Debug)]
pub(crate) struct Fold {
    thread: ThreadId,
    turn: Option<TurnId>,
    /// How many items have a number.
    items: u32,
    /// Numbers of the items that have started and not completed.
    open: HashMap<ItemId, u32>,
    /// Items already reported as completed.
    done: HashSet<ItemId>,
    todo: Option<(u32, Vec<Todo>)>,
    usage: Usage,
    last_message: Option<String>,
    last_error: Option<String>,
    outcome: Option<TurnOutcome>,
}

impl Fold {
    pub(crate) fn new(thread: ThreadId) -> Self {
        Self {
            thread,
            turn: None,
            items: 0,
            open: HashMap::new(),
            done: HashSet::new(),
            todo: None,
            usage: Usage::default(),
            last_message: None,
            last_error: None,
            outcome: None,
        }
    }

    /// Returns the event for the first line.
    pub(crate) fn started(&self) -> Event {
        Event::ThreadStarted {
            thread_id: self.thread.to_string(),
        }
    }

    /// Sets the turn to report. Earlier turns are not reported.
    pub(crate) fn begin(&mut self, turn: TurnId) -> Event {
        self.turn = Some(turn);
        Event::TurnStarted {}
    }

    pub(crate) fn turn(&self) -> Option<&TurnId> {
        self.turn.as_ref()
    }

    /// The outcome of the turn; `None` while it runs.
    pub(crate) fn outcome(&self) -> Option<&TurnOutcome> {
        self.outcome.as_ref()
    }

    /// Returns the events for a notification.
    pub(crate) fn on_notification(&mut self, notification: &Notification) -> Vec<Event> {
        match notification {
            Notification::ItemStarted(it) if self.is_ours(&it.turn_id) => {
                self.item_started(&it.item).into_iter().collect()
            }
            Notification::ItemCompleted(it) if self.is_ours(&it.turn_id) => {
                self.item_completed(&it.item).into_iter().collect()
            }
            Notification::TurnPlanUpdated(it) if self.is_ours(&it.turn_id) => {
                vec![self.planned(&it.plan)]
            }
            Notification::ThreadTokenUsageUpdated(it) if it.thread_id == self.thread => {
                self.usage = wire_items::usage(&it.token_usage);
                Vec::new()
            }
            Notification::Error(it) if self.is_ours(&it.turn_id) => {
                let message = error_text(&it.error);
                self.last_error = Some(message.clone());
                vec![Event::Error {
                    message,
                    will_retry: it.will_retry,
                }]
            }
            Notification::Warning(it)
                if it.thread_id.is_none_or(|thread| thread == self.thread) =>
            {
                vec![self.warning(it.message.clone())]
            }
            Notification::ConfigWarning(it) => {
                vec![self.warning(wire_items::with_details(&it.summary, it.details.as_deref()))]
            }
            Notification::DeprecationNotice(it) => {
                vec![self.warning(wire_items::with_details(&it.summary, it.details.as_deref()))]
            }
            Notification::TurnCompleted(it) if self.is_ours(&it.turn.id) => self.ended(&it.turn),
            _ => Vec::new(),
        }
    }

    /// Catches up from a snapshot after missed notifications: reports items that started or
    /// completed meanwhile.
    pub(crate) fn on_snapshot(&mut self, turn: &Turn) -> Vec<Event> {
        if !self.is_ours(&turn.id) || self.outcome.is_some() {
            return Vec::new();
        }
        let mut events = Vec::new();
        for item in &turn.items {
            let Some(report) =
                wire_items::item_report(item).filter(|it| !self.done.contains(it.id))
            else {
                continue;
            };
            if report.is_over {
                events.extend(self.item_completed(item));
            } else if !self.open.contains_key(report.id) {
                events.extend(self.item_started(item));
            }
        }
        if turn.status != TurnStatus::InProgress {
            events.extend(self.ended(turn));
        }
        events
    }

    /// Ends the run because the connection was lost.
    pub(crate) fn on_lost(&mut self, why: &str) -> Vec<Event> {
        vec![failed(why)]
    }

    /// Returns the event for a warning to the user.
    pub(crate) fn warning(&mut self, message: String) -> Event {
        let number = self.number();
        completed(number, ExecItemBody::Error { message })
    }

    fn is_ours(&self, turn: &TurnId) -> bool {
        self.turn.as_ref() == Some(turn)
    }

    fn number(&mut self) -> u32 {
        self.items += 1;
        self.items - 1
    }

    fn item_started(&mut self, item: &ThreadItem) -> Option<Event> {
        let ItemReport { id, body, .. } = wire_items::item_report(item)?;
        if wire_items::is_reported_whole(&body) {
            return None;
        }
        if let Some(number) = self.open.get(id) {
            let item = named(*number, body);
            return Some(Event::ItemUpdated { item });
        }
        let number = self.number();
        self.open.insert(id.clone(), number);
        let item = named(number, body);
        Some(Event::ItemStarted { item })
    }

    fn item_completed(&mut self, item: &ThreadItem) -> Option<Event> {
        let ItemReport { id, body, .. } = wire_items::item_report(item)?;
        if let ExecItemBody::AgentMessage { text } = &body {
            self.last_message = Some(text.clone());
        }
        let number = match self.open.remove(id) {
            Some(number) => number,
            None => self.number(),
        };
        self.done.insert(id.clone());
        Some(completed(number, body))
    }

    fn planned(&mut self, plan: &[TurnPlanStep]) -> Event {
        let items = wire_items::todo(plan);
        let body = ExecItemBody::TodoList {
            items: items.clone(),
        };
        match &mut self.todo {
            Some((number, items_before)) => {
                *items_before = items;
                Event::ItemUpdated {
                    item: named(*number, body),
                }
            }
            None => {
                let number = self.number();
                self.todo = Some((number, items));
                Event::ItemStarted {
                    item: named(number, body),
                }
            }
        }
    }

    fn ended(&mut self, turn: &Turn) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some((number, items)) = self.todo.take() {
            events.push(completed(number, ExecItemBody::TodoList { items }));
        }
        let outcome = match turn.status {
            TurnStatus::Completed => TurnOutcome::Completed(self.last_message.take()),
            TurnStatus::Interrupted => TurnOutcome::Interrupted,
            _ => TurnOutcome::Failed(self.failure(turn.error.as_ref())),
        };
        events.push(match &outcome {
            TurnOutcome::Completed(_) => Event::TurnCompleted {
                usage: self.usage.clone(),
            },
            TurnOutcome::Failed(failure) => failed(&failure.message),
            TurnOutcome::Interrupted => failed(&self.interruption(turn)),
        });
        self.outcome = Some(outcome);
        events
    }

    fn failure(&self, error: Option<&TurnError>) -> Failure {
        let message = error.map(error_text).or_else(|| self.last_error.clone());
        let info = error.and_then(|it| it.codex_error_info.as_ref());
        Failure {
            message: message.unwrap_or_else(|| "the turn failed without a message".to_owned()),
            is_budget: matches!(info, Some(CodexErrorInfo::SessionBudgetExceeded)),
        }
    }

    fn interruption(&self, turn: &Turn) -> String {
        let message = turn.error.as_ref().map(error_text);
        message.unwrap_or_else(|| "the turn was interrupted".to_owned())
    }
}

pub(crate) fn error_text(error: &TurnError) -> String {
    wire_items::with_details(&error.message, error.additional_details.as_deref())
}

fn failed(message: &str) -> Event {
    Event::TurnFailed {
        error: ErrorText {
            message: message.to_owned(),
        },
    }
}

fn named(number: u32, body: ExecItemBody) -> ExecItem {
    ExecItem {
        id: format!("item_{number}"),
        body,
    }
}

fn completed(number: u32, body: ExecItemBody) -> Event {
    Event::ItemCompleted {
        item: named(number, body),
    }
}

#[cfg(test)]
mod tests;
