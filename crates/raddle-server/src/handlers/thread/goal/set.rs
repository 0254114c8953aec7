//! `thread/goal/set`: set or change a thread's goal. Every client is notified. While the goal is
//! active and no turn runs, the server starts the next turn by itself.

use std::sync::Arc;

use raddle_core::{Command, GoalStatus, SetGoal, goal_view};
use raddle_protocol::methods::ThreadGoalSet;
use raddle_protocol::{ThreadGoalSetParams, ThreadGoalSetResponse, ThreadGoalStatus};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::{WireError, quoted};

/// The longest objective: the model reads it with every turn, and every client receives it.
const OBJECTIVE_CHARS_MAX: usize = 4000;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadGoalSet>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let mut set = match set_goal(params) {
        Ok(set) => set,
        Err(what) => return reply.error(WireError::Refused(what.into())),
    };
    set.principal = threads::principal(&session);
    let answer = reply.into_reply_to(move |done| {
        let goal = done.map(|done| goal_view(done.thread));
        let goal = goal.map_err(|error| threads::refused(id, error))?;
        let goal = goal.ok_or(WireError::Dropped)?;
        Ok(ThreadGoalSetResponse { goal })
    });
    let set = Command::SetGoal(set);
    state.threads.send_command(id, set, answer).await;
}

fn set_goal(params: ThreadGoalSetParams) -> Result<SetGoal, String> {
    let objective = match params.objective.as_deref().map(str::trim) {
        Some("") => return Err("a goal's objective must not be blank".to_owned()),
        Some(text) if text.chars().count() > OBJECTIVE_CHARS_MAX => {
            return Err(format!(
                "a goal's objective has at most {OBJECTIVE_CHARS_MAX} characters; put the rest into a file and name it"
            ));
        }
        objective => objective.map(str::to_owned),
    };
    let token_budget = match params.token_budget {
        None => None,
        Some(budget) => match u64::try_from(budget) {
            Ok(budget) if budget > 0 => Some(budget),
            _ => return Err("a goal's tokenBudget must be above 0".to_owned()),
        },
    };
    let status = match params.status {
        None => None,
        Some(status) => Some(match status {
            ThreadGoalStatus::Active => GoalStatus::Active,
            ThreadGoalStatus::Paused => GoalStatus::Paused,
            ThreadGoalStatus::Blocked => GoalStatus::Blocked,
            ThreadGoalStatus::UsageLimited => GoalStatus::UsageLimited,
            ThreadGoalStatus::BudgetLimited => GoalStatus::BudgetLimited,
            ThreadGoalStatus::Complete => GoalStatus::Complete,
            ThreadGoalStatus::Unrecognized(other) => {
                return Err(format!("a goal has no status `{}`", quoted(&other)));
            }
        }),
    };
    Ok(SetGoal {
        objective,
        status,
        token_budget,
        principal: None,
    })
}
