//! The only bridge from the journal's vocabulary to the wire's.
//!
//! A change of the contract changes this module, and never the journal.

mod ask;
mod budget;
mod goal;
mod item;
mod open;
mod view;

pub use ask::{ask, may_call_answer};
pub use budget::nano_usd;
pub use goal::{goal_view, notification_of_goal};
pub use item::queued_view;
pub use open::{notification_of_usage, notifications_of_open_items};
pub use view::{item_view, list_view, open_item_view, status as status_view, turn_view, view};

use raddle_protocol as wire;
use raddle_protocol::Notification;

use crate::{
    Delta, ErrorClass, Event, Failure, FailureKind, ItemBody, ItemPart, ModelEnd, OpenItem,
    PlanUpdated, Record, RecordBody, RequestNumber, Settings, StepStatus, Thread, ThreadId,
    Timestamp, Topic, TurnEnd, TurnId, Usage,
};

/// Returns the notifications for a record, in order. `thread` is the state just after that record.
pub fn notifications_of(thread: &Thread, record: &Record) -> Vec<Notification> {
    let Some(id) = thread.id() else {
        return Vec::new();
    };
    let mut notifications = Vec::new();
    let status = wire::ThreadStatusChangedNotification {
        thread_id: id,
        status: view::status(thread.status()),
    };
    if thread.goal_at == record.seq {
        notifications.push(goal::goal_notification(thread, id, record));
    }
    let mut status = (thread.status_at == record.seq).then(|| Notification::from(status));
    // The status comes before the event that changed it, except where that is an answer. Of several
    // notifications only the last has the number. A client that is disconnected before the last one
    // receives the others twice, which is harmless for an answer.
    if !is_answer(&record.body) {
        notifications.extend(status.take());
    }
    match &record.body {
        RecordBody::Delta(delta) => notifications.extend(notification_of_delta(thread, id, delta)),
        RecordBody::Event(event) => {
            notifications_of_event(thread, id, event, record, &mut notifications);
        }
    }
    notifications.extend(status);
    notifications
}

fn is_answer(body: &RecordBody) -> bool {
    match body {
        RecordBody::Event(event) => matches!(**event, Event::RequestResolved(_)),
        RecordBody::Delta(_) => false,
    }
}

/// Folds a record into a thread, and returns the notifications for a client that reconnects and
/// knows nothing of the items that began after its cursor. These are the ones of
/// [`notifications_of`]; for a saved item they also contain the text that the thread did not have
/// yet, because its deltas are deleted.
pub fn notifications_on_replay(thread: &mut Thread, record: &Record) -> Vec<Notification> {
    let saved = match &record.body {
        RecordBody::Event(event) => match &**event {
            Event::ItemSaved(it) => Some(it),
            _ => None,
        },
        RecordBody::Delta(_) => None,
    };
    let Some(saved) = saved else {
        let is_torn = matches!(&record.body, RecordBody::Delta(delta) if is_torn(thread, delta));
        thread.apply(record);
        return if is_torn {
            Vec::new()
        } else {
            notifications_of(thread, record)
        };
    };
    // A long item is saved more than once, and each time whole.
    let open = thread.open_item(&saved.item);
    let known = |part: ItemPart| {
        open.and_then(|open| open.texts.get(&part))
            .map_or(0, String::len)
    };
    let texts = saved.texts.iter().filter_map(|it| {
        let known = known(it.part);
        let text = it.text.get(known..).filter(|text| !text.is_empty())?;
        Some(Delta {
            item: saved.item.clone(),
            part: it.part,
            offset: known as u64,
            text: text.to_owned(),
        })
    });
    let texts: Vec<Delta> = texts.collect();
    thread.apply(record);
    let Some(id) = thread.id() else {
        return Vec::new();
    };
    let notification = |text| notification_of_delta(thread, id, text);
    texts.iter().filter_map(notification).collect()
}

/// Whether text in front of this delta is missing, because it is being removed: the event that
/// holds it follows.
fn is_torn(thread: &Thread, delta: &Delta) -> bool {
    let known = |open: &OpenItem| open.texts.get(&delta.part).map_or(0, String::len) as u64;
    let open = thread.open_item(&delta.item);
    open.is_some_and(|open| delta.offset > known(open))
}

fn notifications_of_event(
    thread: &Thread,
    id: ThreadId,
    event: &Event,
    record: &Record,
    notifications: &mut Vec<Notification>,
) {
    let at_ms = record.at.0;
    match event {
        Event::ThreadStarted(_) | Event::Forked(_) => notifications.push(
            wire::ThreadStartedNotification {
                thread: view(thread),
            }
            .into(),
        ),
        Event::Reverted(_) => {
            notifications.push(wire::ThreadRevertedNotification { thread_id: id }.into());
        }
        Event::SettingsChanged(it) => notifications.push(
            wire::ThreadSettingsUpdatedNotification {
                thread_id: id,
                thread_settings: settings_view(&it.settings),
            }
            .into(),
        ),
        Event::Renamed(it) => notifications.push(
            wire::ThreadNameUpdatedNotification {
                thread_id: id,
                thread_name: it.name.clone(),
            }
            .into(),
        ),
        Event::InputQueued(_) | Event::InputUnqueued(_) | Event::QueueReordered(_) => {
            notifications.push(wire::ThreadQueueChangedNotification { thread_id: id }.into());
        }
        Event::Archived { .. } => {
            notifications.push(wire::ThreadArchivedNotification { thread_id: id }.into())
        }
        Event::Unarchived { .. } => {
            notifications.push(wire::ThreadUnarchivedNotification { thread_id: id }.into());
        }
        Event::Deleted { .. } => {
            notifications.push(wire::ThreadDeletedNotification { thread_id: id }.into())
        }
        Event::TurnStarted(_) => notifications.extend(thread.turn().map(|turn| {
            Notification::from(wire::TurnStartedNotification {
                thread_id: id,
                turn: view::open_turn(turn),
            })
        })),
        Event::InputAccepted(it) => {
            notifications.push(started(id, &it.turn, item::open(&it.item), at_ms));
            notifications.push(completed(id, &it.turn, item::whole(&it.item), at_ms));
        }
        Event::ModelEnded(it) => {
            let retried = match &it.end {
                ModelEnd::Broke { error, retry_at } => Some((error, retry_at.0)),
                ModelEnd::Rerouted { error, .. } | ModelEnd::Overflowed { error } => {
                    Some((error, at_ms))
                }
                ModelEnd::Done {}
                | ModelEnd::Failed { .. }
                | ModelEnd::Cancelled {}
                | ModelEnd::OwnerLost {} => None,
            };
            if let Some((error, retry_at_ms)) = retried {
                let error = wire::TurnError {
                    retry_at_ms: Some(retry_at_ms),
                    ..failure(error)
                };
                notifications.push(
                    wire::ErrorNotification {
                        thread_id: id,
                        turn_id: it.turn.clone(),
                        error,
                        will_retry: true,
                    }
                    .into(),
                );
            }
            if let ModelEnd::Rerouted { to, .. } = &it.end {
                let message = format!("The model failed; the turn continues with {to}.");
                notifications.push(
                    wire::WarningNotification {
                        thread_id: Some(id),
                        message,
                        budget: None,
                    }
                    .into(),
                );
            }
            // Sent last, so that it carries the sequence number. A power failure may lose this
            // record, so the notifications before it, which carry no number, must not convey
            // lasting state.
            // The usage of a cancelled call is announced with the next call.
            if it.usage.is_some() && !matches!(it.end, ModelEnd::Cancelled {}) {
                let called = (&thread.asked.model, &thread.asked.provider);
                notifications.push(usage(thread, id, &it.turn, called, record.at));
            }
        }
        Event::ModelUsed(it) => {
            let called = (&it.model, &it.provider);
            notifications.push(usage(thread, id, &it.turn, called, record.at));
        }
        Event::ItemStarted(it) if it.item.is_hidden() => {}
        Event::ItemCompleted(it) if it.item.is_hidden() => {}
        Event::ItemStarted(it) => {
            notifications.push(started(id, &it.turn, item::open(&it.item), at_ms));
        }
        Event::ItemCompleted(it) => {
            notifications.push(completed(id, &it.turn, item::whole(&it.item), at_ms));
        }
        Event::RequestResolved(it) => {
            let settled = thread.settled.back();
            if settled.is_some_and(|last| last.request == it.request && last.is_announced) {
                notifications.push(ask::resolved(id, it).into());
            }
        }
        Event::PlanUpdated(it) => notifications.push(plan(id, it)),
        Event::DiffUpdated(it) => notifications.push(
            wire::TurnDiffUpdatedNotification {
                thread_id: id,
                turn_id: it.turn.clone(),
                diff: it.diff.clone(),
            }
            .into(),
        ),
        Event::Warned(it) => notifications.push(
            wire::WarningNotification {
                thread_id: Some(id),
                message: it.message.clone(),
                budget: it.budget.as_ref().map(budget::spending),
            }
            .into(),
        ),
        Event::Briefed(it) => {
            let is_shown = it.topic == Topic::WithheldSkills && !it.is_asked;
            let is_warning = is_shown && !it.text.is_empty();
            notifications.extend(is_warning.then(|| {
                Notification::from(wire::WarningNotification {
                    thread_id: Some(id),
                    message: it.text.clone(),
                    budget: None,
                })
            }));
        }
        Event::TurnEnded(it) => {
            if let TurnEnd::Failed(error) = &it.end {
                notifications.push(
                    wire::ErrorNotification {
                        thread_id: id,
                        turn_id: it.turn.clone(),
                        error: failure(error),
                        will_retry: false,
                    }
                    .into(),
                );
            }
            notifications.extend(thread.last_turn().map(|turn| {
                Notification::from(wire::TurnCompletedNotification {
                    thread_id: id,
                    turn: view::last_turn(turn),
                })
            }));
        }
        // Nothing that a client needs, or it is sent as a request instead of a notification.
        Event::Owned(_)
        | Event::MetadataChanged(_)
        | Event::ItemsInjected(_)
        | Event::GoalSet(_)
        | Event::GoalCleared { .. }
        | Event::Reserved(_)
        | Event::Released {}
        | Event::ModelCalled(_)
        | Event::ItemSaved(_)
        | Event::ToolStarted(_)
        | Event::RequestOpened(_)
        | Event::InterruptAccepted(_)
        | Event::Compacted(_)
        | Event::Remembered(_) => {}
    }
}

fn notification_of_delta(thread: &Thread, id: ThreadId, delta: &Delta) -> Option<Notification> {
    let open = thread.open_item(&delta.item)?;
    let turn_id = thread.turn()?.id.clone();
    let item_id = delta.item.clone();
    let (thread_id, text) = (id, delta.text.clone());
    Some(match delta.part {
        ItemPart::Text if matches!(open.item.body, ItemBody::Plan(_)) => {
            wire::PlanDeltaNotification {
                thread_id,
                turn_id,
                item_id,
                delta: text,
            }
            .into()
        }
        ItemPart::Text => wire::AgentMessageDeltaNotification {
            thread_id,
            turn_id,
            item_id,
            delta: text,
        }
        .into(),
        ItemPart::Summary(index) => wire::ReasoningSummaryTextDeltaNotification {
            thread_id,
            turn_id,
            item_id,
            delta: text,
            summary_index: index.into(),
        }
        .into(),
        ItemPart::Content(index) => wire::ReasoningTextDeltaNotification {
            thread_id,
            turn_id,
            item_id,
            content_index: index.into(),
            delta: text,
        }
        .into(),
        ItemPart::Printed => wire::CommandExecutionOutputDeltaNotification {
            thread_id,
            turn_id,
            item_id,
            delta: text,
        }
        .into(),
    })
}

/// Returns a request's id on the wire: a string with the thread and the number, so that it is the
/// same while the request is open, whichever process sends it.
pub(crate) fn request_id(thread: ThreadId, request: RequestNumber) -> wire::RequestId {
    wire::RequestId::String(format!("{thread}:{request}").into())
}

fn started(id: ThreadId, turn: &TurnId, item: wire::ThreadItem, at_ms: i64) -> Notification {
    wire::ItemStartedNotification {
        thread_id: id,
        turn_id: turn.clone(),
        item,
        started_at_ms: at_ms,
    }
    .into()
}

fn completed(id: ThreadId, turn: &TurnId, item: wire::ThreadItem, at_ms: i64) -> Notification {
    wire::ItemCompletedNotification {
        thread_id: id,
        turn_id: turn.clone(),
        completed_at_ms: at_ms,
        item,
    }
    .into()
}

fn plan(id: ThreadId, it: &PlanUpdated) -> Notification {
    let steps = it.steps.iter().map(|step| wire::TurnPlanStep {
        step: step.step.clone(),
        status: match step.status {
            StepStatus::Pending => wire::TurnPlanStepStatus::Pending,
            StepStatus::InProgress => wire::TurnPlanStepStatus::InProgress,
            StepStatus::Completed => wire::TurnPlanStepStatus::Completed,
        },
    });
    wire::TurnPlanUpdatedNotification {
        thread_id: id,
        turn_id: it.turn.clone(),
        plan: steps.collect(),
        explanation: it.explanation.clone(),
    }
    .into()
}

fn usage(
    thread: &Thread,
    id: ThreadId,
    turn: &TurnId,
    (model, provider): (&Option<String>, &Option<String>),
    now: Timestamp,
) -> Notification {
    let cost = Some(thread.nano_usd()).filter(|it| *it > 0);
    let budgets: Vec<_> = thread.spending(now).iter().map(budget::spending).collect();
    let window = thread.settings().window;
    wire::ThreadTokenUsageUpdatedNotification {
        thread_id: id,
        turn_id: turn.clone(),
        token_usage: wire::ThreadTokenUsage {
            last: breakdown(&thread.last_usage),
            total: breakdown(&thread.usage),
            model_context_window: window.map(count),
        },
        model: model.clone(),
        model_provider: provider.clone(),
        cost_usd: cost.map(budget::usd),
        budgets: Some(budgets).filter(|it| !it.is_empty()),
    }
    .into()
}

fn breakdown(usage: &Usage) -> wire::TokenUsageBreakdown {
    wire::TokenUsageBreakdown {
        cached_input_tokens: count(usage.cached),
        input_tokens: count(usage.input),
        output_tokens: count(usage.output),
        reasoning_output_tokens: count(usage.reasoning),
        total_tokens: count(usage.total()),
        cache_write_input_tokens: count(usage.cache_written),
    }
}

fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// Converts a failure to its form on the wire.
pub(crate) fn failure(failure: &Failure) -> wire::TurnError {
    use wire::CodexErrorInfo as Info;
    let http = |status: &Option<u16>| wire::HttpFailure {
        http_status_code: *status,
    };
    let info = match &failure.kind {
        FailureKind::ContextFull => Info::ContextWindowExceeded,
        FailureKind::BudgetSpent => Info::SessionBudgetExceeded,
        FailureKind::UsageLimit => Info::UsageLimitExceeded,
        FailureKind::RateLimit => Info::RateLimitExceeded,
        FailureKind::Overloaded => Info::ServerOverloaded,
        FailureKind::ModelNotFound => Info::ModelNotFound,
        FailureKind::VendorFailed => Info::InternalServerError,
        FailureKind::Unauthorized => Info::Unauthorized,
        FailureKind::BadRequest => Info::BadRequest,
        FailureKind::Policy => Info::CyberPolicy,
        FailureKind::Connection { status } => Info::HttpConnectionFailed(http(status)),
        FailureKind::Untrusted => Info::HttpConnectionFailed(http(&None)),
        FailureKind::Stream { status } => Info::ResponseStreamDisconnected(http(status)),
        FailureKind::Unreadable => Info::ResponseStreamDisconnected(http(&None)),
        FailureKind::TooManyAttempts => Info::ResponseTooManyFailedAttempts(http(&None)),
        FailureKind::Sandbox => Info::SandboxError,
        FailureKind::RecoveryLimit => Info::Unrecognized("recoveryLimit".into()),
        FailureKind::StorageFull => Info::Unrecognized("storageFull".into()),
        FailureKind::CutShort | FailureKind::Internal | FailureKind::Other => Info::Other,
    };
    wire::TurnError {
        message: failure.message.clone(),
        additional_details: failure.details.clone(),
        codex_error_info: Some(info),
        misalignment: None,
        class: Some(class(failure.kind.class())),
        retry_at_ms: failure.retry_at.map(|it| it.0),
        budget: failure.budget.as_ref().map(budget::spending),
    }
}

fn class(class: ErrorClass) -> wire::ErrorClass {
    match class {
        ErrorClass::Transient => wire::ErrorClass::Transient,
        ErrorClass::RateLimited => wire::ErrorClass::RateLimited,
        ErrorClass::Quota => wire::ErrorClass::Quota,
        ErrorClass::Auth => wire::ErrorClass::Auth,
        ErrorClass::Policy => wire::ErrorClass::Policy,
        ErrorClass::ContextOverflow => wire::ErrorClass::ContextOverflow,
        ErrorClass::BadRequest => wire::ErrorClass::BadRequest,
        ErrorClass::Unavailable => wire::ErrorClass::Unavailable,
        ErrorClass::Internal => wire::ErrorClass::Internal,
    }
}

/// Converts all settings to their form on the wire.
pub fn settings_view(settings: &Settings) -> wire::ThreadSettings {
    let model = settings.model.clone().unwrap_or_default();
    wire::ThreadSettings {
        approval_policy: view::approval(&settings.approval),
        approvals_reviewer: view::reviewer(settings.reviewer),
        collaboration_mode: wire::CollaborationMode {
            mode: wire::ModeKind::Default,
            settings: wire::Settings {
                model: model.clone(),
                developer_instructions: settings.developer_instructions.clone(),
                reasoning_effort: settings.effort.clone(),
            },
        },
        cwd: settings.cwd.clone(),
        model,
        model_provider: settings.provider.clone().unwrap_or_default(),
        sandbox_policy: view::sandbox(&settings.sandbox),
        active_permission_profile: settings.profile.as_ref().map(|it| {
            wire::ActivePermissionProfile {
                id: it.id.clone(),
                extends: it.extends.clone(),
            }
        }),
        budget: budget::limits(settings),
        disabled_plugin_ids: Vec::new(),
        effort: settings.effort.clone(),
        multi_agent_mode: wire::MultiAgentMode::default(),
        personality: settings.personality.as_deref().map(wire::Personality::from),
        service_tier: settings.tier.clone(),
        summary: settings
            .summary
            .as_deref()
            .map(wire::ReasoningSummary::from),
    }
}
