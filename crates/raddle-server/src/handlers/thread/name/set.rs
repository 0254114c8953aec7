//! `thread/name/set`: name a thread. Every client is notified.

use std::sync::Arc;

use raddle_core::{Command, Rename};
use raddle_protocol::ThreadSetNameResponse;
use raddle_protocol::methods::ThreadNameSet;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// Limit: a thread's name; beyond it, the server rejects the request with -32600.
///
/// The longest name: every client receives it.
const NAME_CHARS_MAX: usize = 1000;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadNameSet>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let name = params.name.trim();
    if name.is_empty() {
        let what = "a thread's name must not be blank";
        return reply.error(WireError::Refused(what.into()));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        let what = format!("a thread's name has at most {NAME_CHARS_MAX} characters");
        return reply.error(WireError::Refused(what.into()));
    }
    let rename = Command::Rename(Rename {
        name: Some(name.to_owned()),
        principal: threads::principal(&session),
    });
    let id = params.thread_id;
    let answer = reply.into_reply_to(move |done| {
        let named = done.map(|_| ThreadSetNameResponse {});
        named.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, rename, answer).await;
}
