//! Coverage: a simulator that never meets a situation proves nothing about it.

use std::collections::BTreeMap;

use raddle_core::policy::Verdict;
use raddle_core::{
    Ask, Cause, Event, FailureKind, ItemStatus, ModelEnd, POLICY, Record, RecordBody, Refusal,
    RequestAnswer, Resolution, TurnEnd, WriterEnd,
};

/// Number of times that each situation occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(pub BTreeMap<&'static str, u64>);

/// Situations that are too rare to be required of every run. Stored seeds reach them.
pub const RARE: &[&str] = &[
    "question outlived its call",
    "hunks written in another working directory",
    "refusal OutcomeUnknown",
    "taken from a partitioned node",
];

/// Every situation that must occur, often.
pub const REQUIRED: &[&str] = &[
    "fault kill",
    "fault leave",
    "fault power cut",
    "fault pause",
    "fault clock jump",
    "fault unavailable",
    "fault full",
    "fault read-only",
    "fault lease lost",
    "fault fail-over",
    "fault partition",
    "statement lost",
    "statement late",
    "response lost",
    "late or duplicate response",
    "wait for the standby broken off",
    "unknown settled",
    "batch of several threads",
    "batch lost with the primary",
    "lost batch sent again",
    "lost text stored with an event",
    "read while batches are lost",
    "batch refused by a seal",
    "batch acknowledged by a former primary",
    "append lost",
    "append answer lost",
    "append slow",
    "conflict",
    "lease late",
    "connection cut",
    "killed between stored and told",
    "records lost with the power",
    "zombie woke",
    "cursor good",
    "cursor expired",
    "snapshot",
    "opened from a base",
    "fell behind",
    "text saved while someone catches up",
    "base lost and its records not",
    "records of one thread lost and of another not",
    "settled text came back when the power went",
    "clock set back while something waits",
    "clock set back while an append is under way",
    "barrier in conflict",
    "message whole after a call",
    "revert into what was taken back refused",
    "owner lost between a summary and the end of its call",
    "interrupt while an append is under way",
    "interrupt of a turn that is over",
    "fork of a fork",
    "fork mid-turn",
    "recovery by the node's default",
    "tool stopped too slowly",
    "two answers",
    "hunks accepted",
    "all hunks dropped",
    "ruling allow",
    "ruling by a yes for the session",
    "ruling ask",
    "ruling deny",
    "tool asked about by its name",
    "yes in the end",
    "rights for the turn",
    "rights for the session",
    "command of the user's",
    "same request again",
    "event ThreadStarted",
    "event Owned",
    "event Reserved",
    "event Released",
    "event Forked",
    "event Reverted",
    "event SettingsChanged",
    "event Renamed",
    "event MetadataChanged",
    "event GoalSet",
    "event GoalCleared",
    "event InputQueued",
    "event InputUnqueued",
    "event QueueReordered",
    "event Archived",
    "event Unarchived",
    "event Deleted",
    "event Briefed",
    "event ItemsInjected",
    "event TurnStarted",
    "event InputAccepted",
    "event ModelCalled",
    "event ModelEnded",
    "event ModelUsed",
    "event ItemStarted",
    "event ItemSaved",
    "event ToolStarted",
    "event ItemCompleted",
    "event RequestOpened",
    "event RequestResolved",
    "event PlanUpdated",
    "event DiffUpdated",
    "event Warned",
    "event InterruptAccepted",
    "event TurnEnded",
    "event Compacted",
    "event Remembered",
    "delta",
    "model done",
    "model broke",
    "model rerouted",
    "model overflowed",
    "model failed",
    "model cancelled",
    "model owner lost",
    "turn completed",
    "turn interrupted",
    "turn failed",
    "turn at a full store",
    "turn cancelled",
    "turn ended with its owner",
    "turn left behind by a fork",
    "turn at its recovery limit",
    "item completed",
    "item partial",
    "item failed",
    "item declined",
    "item not run",
    "item interrupted",
    "item unknown",
    "request answered",
    "request expired",
    "request withdrawn",
    "refusal AlreadyStarted",
    "refusal Deleted",
    "refusal OwnedElsewhere",
    "refusal NoTurn",
    "refusal OtherTurn",
    "refusal NotSteerable",
    "refusal TurnRunning",
    "refusal TurnStopping",
    "refusal EmptyInput",
    "refusal Unpaired",
    "refusal NoGoal",
    "refusal NothingWaits",
    "refusal QueueFull",
    "refusal NotQueued",
    "refusal OtherQueue",
    "refusal NoRequest",
    "refusal AlreadyResolved",
    "refusal WrongAnswer",
    "refusal NoItem",
    "refusal ItemExists",
    "refusal StaleCall",
    "refusal ItemFull",
    "refusal ToolNotRunning",
    "refusal NoSuchTurn",
    "refusal TooManyReverts",
    "refusal KeyReused",
    "refusal Busy",
    "refusal NotStored",
    "ended OwnedElsewhere",
    "ended NotStored",
    "ended Deleted",
    "ended Released",
];

impl Coverage {
    /// Counts a situation that occurred.
    pub fn hit(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds the counters of another run.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// Returns the required situations that occurred less than this often.
    pub fn below(&self, least: u64) -> Vec<(&'static str, u64)> {
        let count = |what: &&'static str| (*what, self.0.get(*what).copied().unwrap_or(0));
        REQUIRED
            .iter()
            .map(count)
            .filter(|(_, count)| *count < least)
            .collect()
    }

    /// Counts a stored record.
    pub fn record(&mut self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return self.hit("delta");
        };
        self.hit(event_name(event));
        match &**event {
            Event::ModelEnded(it) => self.hit(match it.end {
                ModelEnd::Done {} => "model done",
                ModelEnd::Broke { .. } => "model broke",
                ModelEnd::Rerouted { .. } => "model rerouted",
                ModelEnd::Overflowed { .. } => "model overflowed",
                ModelEnd::Failed { .. } => "model failed",
                ModelEnd::Cancelled {} => "model cancelled",
                ModelEnd::OwnerLost {} => "model owner lost",
            }),
            Event::TurnEnded(it) => self.hit(match &it.end {
                TurnEnd::Completed {} => "turn completed",
                TurnEnd::Interrupted(Cause::Cancelled { .. }) => "turn cancelled",
                TurnEnd::Interrupted(Cause::OwnerLost {}) => "turn ended with its owner",
                TurnEnd::Interrupted(Cause::Forked {}) => "turn left behind by a fork",
                TurnEnd::Interrupted(_) => "turn interrupted",
                TurnEnd::Failed(it) if it.kind == FailureKind::RecoveryLimit => {
                    "turn at its recovery limit"
                }
                TurnEnd::Failed(it) if it.kind == FailureKind::StorageFull => {
                    "turn at a full store"
                }
                TurnEnd::Failed(_) => "turn failed",
            }),
            Event::ItemCompleted(it) => self.hit(match it.item.status {
                ItemStatus::InProgress => "item in progress",
                ItemStatus::Completed => "item completed",
                ItemStatus::Partial => "item partial",
                ItemStatus::Failed => "item failed",
                ItemStatus::Declined => "item declined",
                ItemStatus::NotRun => "item not run",
                ItemStatus::Interrupted => "item interrupted",
                ItemStatus::Unknown => "item unknown",
            }),
            Event::RequestResolved(it) => {
                self.hit(match &it.resolution {
                    Resolution::Answered { by, .. } if by == POLICY => "yes in the end",
                    Resolution::Answered { .. } => "request answered",
                    Resolution::Expired {} => "request expired",
                    Resolution::Withdrawn {} => "request withdrawn",
                });
                if let Resolution::Answered { answer, .. } = &it.resolution
                    && let RequestAnswer::AcceptHunks { hunks } = &**answer
                {
                    self.hit(match hunks.iter().any(|it| it.accept) {
                        true => "hunks accepted",
                        false => "all hunks dropped",
                    });
                }
                match &it.grant {
                    Some(grant) if grant.session => self.hit("rights for the session"),
                    Some(_) => self.hit("rights for the turn"),
                    None => {}
                }
            }
            Event::ItemStarted(it) if it.item.is_users_command() => {
                self.hit("command of the user's");
            }
            Event::ItemStarted(it) => {
                if let Some(ruling) = &it.ruling {
                    self.hit(match ruling.verdict {
                        Verdict::Allow if ruling.rule == "session" => {
                            "ruling by a yes for the session"
                        }
                        Verdict::Allow => "ruling allow",
                        Verdict::Ask => "ruling ask",
                        Verdict::Deny => "ruling deny",
                    });
                }
            }
            Event::RequestOpened(it) if matches!(it.ask, Ask::Tool(_)) => {
                self.hit("tool asked about by its name");
            }
            _ => {}
        }
    }
}

fn event_name(event: &Event) -> &'static str {
    match event {
        Event::ThreadStarted(_) => "event ThreadStarted",
        Event::Owned(_) => "event Owned",
        Event::Reserved(_) => "event Reserved",
        Event::Released {} => "event Released",
        Event::Forked(_) => "event Forked",
        Event::Reverted(_) => "event Reverted",
        Event::SettingsChanged(_) => "event SettingsChanged",
        Event::Renamed(_) => "event Renamed",
        Event::MetadataChanged(_) => "event MetadataChanged",
        Event::GoalSet(_) => "event GoalSet",
        Event::GoalCleared { .. } => "event GoalCleared",
        Event::InputQueued(_) => "event InputQueued",
        Event::InputUnqueued(_) => "event InputUnqueued",
        Event::QueueReordered(_) => "event QueueReordered",
        Event::Archived { .. } => "event Archived",
        Event::Unarchived { .. } => "event Unarchived",
        Event::Deleted { .. } => "event Deleted",
        Event::Briefed(_) => "event Briefed",
        Event::ItemsInjected(_) => "event ItemsInjected",
        Event::TurnStarted(_) => "event TurnStarted",
        Event::InputAccepted(_) => "event InputAccepted",
        Event::ModelCalled(_) => "event ModelCalled",
        Event::ModelEnded(_) => "event ModelEnded",
        Event::ModelUsed(_) => "event ModelUsed",
        Event::ItemStarted(_) => "event ItemStarted",
        Event::ItemSaved(_) => "event ItemSaved",
        Event::ToolStarted(_) => "event ToolStarted",
        Event::ItemCompleted(_) => "event ItemCompleted",
        Event::RequestOpened(_) => "event RequestOpened",
        Event::RequestResolved(_) => "event RequestResolved",
        Event::PlanUpdated(_) => "event PlanUpdated",
        Event::DiffUpdated(_) => "event DiffUpdated",
        Event::Warned(_) => "event Warned",
        Event::InterruptAccepted(_) => "event InterruptAccepted",
        Event::TurnEnded(_) => "event TurnEnded",
        Event::Compacted(_) => "event Compacted",
        Event::Remembered(_) => "event Remembered",
    }
}

/// Returns the name of a refusal among the counters.
pub fn refusal_name(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotStarted => "refusal NotStarted",
        Refusal::AlreadyStarted => "refusal AlreadyStarted",
        Refusal::Deleted => "refusal Deleted",
        Refusal::OwnedElsewhere => "refusal OwnedElsewhere",
        Refusal::NoTurn => "refusal NoTurn",
        Refusal::OtherTurn { .. } => "refusal OtherTurn",
        Refusal::NotSteerable { .. } => "refusal NotSteerable",
        Refusal::TurnRunning => "refusal TurnRunning",
        Refusal::TurnStopping => "refusal TurnStopping",
        Refusal::EmptyInput => "refusal EmptyInput",
        Refusal::NoGoal => "refusal NoGoal",
        Refusal::NothingWaits => "refusal NothingWaits",
        Refusal::QueueFull => "refusal QueueFull",
        Refusal::NotQueued => "refusal NotQueued",
        Refusal::OtherQueue => "refusal OtherQueue",
        Refusal::Unpaired { .. } => "refusal Unpaired",
        Refusal::NoRequest => "refusal NoRequest",
        Refusal::AlreadyResolved { .. } => "refusal AlreadyResolved",
        Refusal::WrongAnswer => "refusal WrongAnswer",
        Refusal::NoItem => "refusal NoItem",
        Refusal::ItemExists => "refusal ItemExists",
        Refusal::StaleCall => "refusal StaleCall",
        Refusal::ItemFull => "refusal ItemFull",
        Refusal::ToolNotRunning => "refusal ToolNotRunning",
        Refusal::NoSuchTurn => "refusal NoSuchTurn",
        Refusal::TooManyReverts => "refusal TooManyReverts",
        Refusal::KeyReused => "refusal KeyReused",
        Refusal::Busy => "refusal Busy",
        Refusal::NotStored(_) => "refusal NotStored",
        Refusal::OutcomeUnknown => "refusal OutcomeUnknown",
    }
}

/// Returns the name of a task's end among the counters.
pub fn ended_name(ended: &WriterEnd) -> &'static str {
    match ended {
        WriterEnd::OwnedElsewhere => "ended OwnedElsewhere",
        WriterEnd::NotStored(_) => "ended NotStored",
        WriterEnd::Deleted => "ended Deleted",
        WriterEnd::Released => "ended Released",
    }
}
