//! Goals, and the turns that begin by themselves.

use crate::{Briefed, GoalStatus, TurnId};

/// Give a thread a goal, or change the one it has. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetGoal {
    /// What is to be reached.
    pub objective: Option<String>,
    /// Where it stands; a new goal is active.
    pub status: Option<GoalStatus>,
    /// The most tokens it may use.
    pub token_budget: Option<u64>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Take a thread's goal away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearGoal {
    /// Who asks.
    pub principal: Option<String>,
}

/// Begin the turn that is to begin by itself: with what waits in the queue, or for the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginTurn {
    /// Its id.
    pub turn: TurnId,
    /// What there is to say about the surroundings, as with [`StartTurn`](crate::StartTurn).
    pub briefs: Vec<Briefed>,
}
