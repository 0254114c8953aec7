//! The problems of a configuration that a server would report, for the command line.

use raddle_config::Configuration;
use raddle_protocol::ThreadStartParams;
use raddle_rpc::ErrorObject;

use super::threads;
use crate::wire_error::WireError;

/// Returns the invalid values that are in force, a sentence each, and the reasons why a new thread
/// is rejected.
pub fn config_problems(config: &Configuration) -> Vec<String> {
    let mut problems = config.invalid_values();
    // Otherwise a thread would be rejected for these again, with other texts.
    let state = config.valid_state();
    let start = threads::settings(&ThreadStartParams::default(), &state).map(drop);
    // A thread is rejected for the first of them only.
    let budgets = threads::check_budgets(&state);
    let network = state.hosts().map(drop).map_err(WireError::from);
    for refusal in [start, budgets, network]
        .into_iter()
        .filter_map(Result::err)
    {
        let what = ErrorObject::from(refusal).message.to_string();
        if !problems.contains(&what) {
            problems.push(what);
        }
    }
    problems
}
