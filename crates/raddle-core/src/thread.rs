//! The thread: a fold over its records.

mod advance;
mod answer_request;
mod apply;
mod ask_for_tool;
mod ask_trust;
mod brief;
mod budget;
mod call_tool;
mod closing;
mod compact;
mod delete;
mod end_model;
mod end_tool;
mod goal;
mod inject;
mod interrupt;
mod item_text;
mod keys;
mod manage;
mod next_turn;
mod open_item;
mod own;
mod queue;
mod queued_input;
mod revert;
mod review;
mod run_shell;
mod set_goal;
mod start_turn;
mod state;
mod wait_reason;

pub use advance::POLICY;
pub(crate) use answer_request::hunks_of;
pub use ask_trust::trust_answer;
pub use budget::ModelUsage;
pub use goal::Goal;
pub use open_item::OpenItem;
pub use queued_input::QueuedInput;
pub use state::{Base, CursorStatus, LastTurn, OpenRequest, OpenTurn, Status, Thread};
pub use wait_reason::{ToolRef, WaitReason};

use crate::{
    Command, CommandOutcome, ItemId, Purpose, RecordBody, Refusal, Seq, Timestamp, TurnId,
};

/// Pending work outside the thread, for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// Calls the model and reports its events.
    CallModel {
        /// Id of the turn.
        turn: TurnId,
        /// Number of the call.
        call: u32,
    },
    /// Runs the tool of an item and reports its result.
    RunTool {
        /// Id of the turn.
        turn: TurnId,
        /// Id of the item.
        item: ItemId,
    },
    /// Starts the turn that needs no client: reads the environment and sends the command.
    BeginTurn {
        /// Record that began the turn before it.
        after: Seq,
    },
    /// Stops a running tool, which still reports its end.
    StopTool {
        /// Id of the item.
        item: ItemId,
    },
}

/// Effect of a command: its records and the result for its sender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) bodies: Vec<RecordBody>,
    pub(crate) outcome: CommandOutcome,
}

impl Decision {
    fn done(bodies: Vec<RecordBody>) -> Self {
        Self {
            bodies,
            outcome: CommandOutcome::Done {},
        }
    }
}

impl From<Vec<RecordBody>> for Decision {
    fn from(bodies: Vec<RecordBody>) -> Self {
        Self::done(bodies)
    }
}

impl Thread {
    /// Decides the effect of a command in the present state. Reads, never writes.
    pub fn decide(
        &self,
        command: Command,
        now: Timestamp,
    ) -> Result<(Vec<RecordBody>, CommandOutcome), Refusal> {
        self.decision(command, now)
            .map(|decision| (decision.bodies, decision.outcome))
    }

    pub(crate) fn decision(&self, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
        match (&self.identity, &command) {
            (None, Command::StartThread(_) | Command::Own(_)) => {}
            (None, _) => return Err(Refusal::NotStarted),
            (Some(_), Command::StartThread(_)) => return Err(Refusal::AlreadyStarted),
            (Some(_), _) if self.deleted => return Err(Refusal::Deleted),
            (Some(_), _) => {}
        }
        match command {
            Command::StartThread(it) => Ok(manage::start_thread(*it)),
            Command::Own(it) => own::decide(self, it, now),
            Command::Release => Ok(own::release()),
            Command::Revert(it) => revert::decide(self, it),
            Command::ChangeSettings(it) => Ok(manage::change_settings(self, *it)),
            Command::Rename(it) => Ok(manage::rename(self, it)),
            Command::ChangeMetadata(it) => Ok(manage::change_metadata(self, it)),
            Command::InjectItems(it) => inject::decide(it),
            Command::SetGoal(it) => set_goal::set(self, it),
            Command::ClearGoal(it) => set_goal::clear(self, it),
            Command::Enqueue(it) => queue::enqueue(self, it),
            Command::ChangeQueued(it) => queue::change(self, it),
            Command::Unqueue(it) => queue::unqueue(self, it),
            Command::ReorderQueue(it) => queue::reorder(self, it),
            Command::StartQueued(it) => queue::start(self, it, now),
            Command::BeginTurn(it) => next_turn::begin(self, it, now),
            Command::Archive(it) => manage::archive(self, it),
            Command::Delete(it) => Ok(delete::decide(self, it, now)),
            Command::StartTurn(it) => start_turn::decide(self, *it, now),
            Command::StartReview(it) => review::decide(self, *it, now),
            Command::RunShell(it) => run_shell::decide(self, *it, now),
            Command::Steer(it) => start_turn::steer(self, it, now),
            Command::Interrupt(it) => interrupt::decide(self, it, now),
            Command::AnswerRequest(it) => answer_request::decide(self, *it, now),
            Command::UpdateItem(it) => item_text::update(self, it, now),
            Command::AppendText(it) => item_text::append(self, it),
            Command::CallTool(it) => call_tool::decide(self, *it, now),
            Command::EndModel(it) => end_model::decide(self, *it, now),
            Command::Compact(it) => compact::decide(self, it, now),
            Command::AskForTool(it) => ask_for_tool::decide(self, *it),
            Command::WithdrawRequest(it) => ask_for_tool::withdraw(self, it),
            Command::AskTrust(it) => ask_trust::decide(self, it),
            Command::CountModelUse(it) => manage::count_model_use(self, *it),
            Command::EndTool(it) => end_tool::decide(self, *it, now),
            Command::UpdatePlan(it) => manage::update_plan(self, it),
            Command::UpdateDiff(it) => manage::update_diff(self, it),
            Command::Warn(it) => Ok(manage::warn(it)),
        }
    }

    /// Returns the pending work, computed from the state. After a restart, call it again.
    pub fn pending(&self) -> Vec<Effect> {
        let Some(turn) = &self.turn else {
            let after = self.turn_at;
            let begin = self.next_turn().map(|_| Effect::BeginTurn { after });
            return begin.into_iter().collect();
        };
        let mut effects = Vec::new();
        if let Some(model) = &turn.model {
            effects.push(Effect::CallModel {
                turn: turn.id.clone(),
                call: model.call,
            });
        }
        for open in turn.items.iter().filter(|open| open.started) {
            effects.push(Effect::RunTool {
                turn: turn.id.clone(),
                item: open.item.id.clone(),
            });
            if turn.stopping.is_some() {
                effects.push(Effect::StopTool {
                    item: open.item.id.clone(),
                });
            }
        }
        effects
    }

    /// Purpose of the running model call, if there is one.
    pub fn purpose(&self) -> Option<Purpose> {
        Some(self.turn.as_ref()?.model.as_ref()?.purpose)
    }

    /// Attempt number of the newest model call, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.turn.as_ref().map_or(0, |turn| turn.attempts)
    }
}
