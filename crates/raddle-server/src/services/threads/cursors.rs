//! Cursors of lists that belong to a thread. Each names the thread, so that one of another thread is refused.

use raddle_agent::AgentError;
use raddle_core::ThreadId;
use raddle_core::ports::ReadError;

/// The character between a place in a list and the thread.
const CURSOR_SEPARATOR: char = '@';

/// The cursor for a place in a list of the thread.
pub(crate) fn cursor(id: ThreadId, place: &str) -> String {
    format!("{place}{CURSOR_SEPARATOR}{id}")
}

/// The place that a cursor names, if a list of the thread gave it.
pub(crate) fn place(id: ThreadId, cursor: &str) -> Result<String, AgentError> {
    let place = cursor.split_once(CURSOR_SEPARATOR);
    let place = place.filter(|(_, thread)| *thread == id.to_string());
    let place = place.map(|(place, _)| place.to_owned());
    place.ok_or(AgentError::Read(ReadError::BadCursor))
}
