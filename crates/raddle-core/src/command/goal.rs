//! Commands for goals, and the turns that begin without a client.

use crate::{Briefed, GoalStatus, TurnId};

/// Sets a thread's goal, or changes the current one. `None` leaves a value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetGoal {
    /// Text of the goal.
    pub objective: Option<String>,
    /// Status of the goal; a new goal is active.
    pub status: Option<GoalStatus>,
    /// Maximum number of tokens that the goal may use.
    pub token_budget: Option<u64>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Clears a thread's goal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearGoal {
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Starts the turn that needs no client: with the queue's next input, or for the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginTurn {
    /// Id of the new turn.
    pub turn: TurnId,
    /// Notes on the environment, as with [`StartTurn`](crate::StartTurn).
    pub briefs: Vec<Briefed>,
}
