//! `thread/shellCommand`: run a shell command of the user.

use std::sync::Arc;

use raddle_agent::UserCommand;
use raddle_core::Sandbox;
use raddle_protocol::ThreadShellCommandResponse;
use raddle_protocol::methods::ThreadShellCommand;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadShellCommand>) {
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
    let id = params.thread_id;
    let argv = ["sh", "-c", &params.command].map(str::to_owned);
    if let Some(why) = state
        .threads
        .objection(argv.into(), Sandbox::FullAccess)
        .await
    {
        let why = format!("the command would run without a sandbox, which is not allowed: {why}");
        return reply.error(WireError::Refused(why.into()));
    }
    let command = UserCommand {
        line: params.command,
        time_ms_max,
        principal: threads::principal(&session),
    };
    let answer = reply.into_reply_to(move |done| {
        let response = done.map(|_| ThreadShellCommandResponse {});
        response.map_err(|error| threads::refused(id, error))
    });
    state.threads.run_shell(id, command, answer).await;
}
