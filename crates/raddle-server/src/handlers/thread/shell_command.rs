//! `thread/shellCommand`: run a command of the user's.

use std::sync::Arc;

use raddle_agent::UserCommand;
use raddle_core::Sandbox;
use raddle_protocol::ThreadShellCommandResponse;
use raddle_protocol::methods::ThreadShellCommand;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadShellCommand>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if params.command.trim().is_empty() {
        return reply.error(WireError::Refused("command must not be empty".into()));
    }
    let time_ms_max = match params.timeout_ms.map(u64::try_from).transpose() {
        Ok(time) => time,
        Err(_) => {
            let why = "timeoutMs must not be negative";
            return reply.error(WireError::Refused(why.into()));
        }
    };
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let words = ["sh", "-c", &params.command].map(str::to_owned);
        if let Some(why) = rooms
            .threads
            .objection(words.into(), Sandbox::FullAccess)
            .await
        {
            let why = format!("the command would run without a sandbox, and may not: {why}");
            return reply.error(WireError::Refused(why.into()));
        }
        let line = UserCommand {
            line: params.command,
            time_ms_max,
            principal: threads::principal(&session),
        };
        let answer = reply.into_reply_to(move |done| {
            let begun = done.map(|_| ThreadShellCommandResponse {});
            begun.map_err(|error| threads::refused(id, error))
        });
        rooms.threads.run_shell(id, line, answer).await;
    });
}
