//! Starts a thread or resumes one, runs a turn in it, and approves what it asks for. Prints what it
//! saw as JSON.
//!
//! Usage: codex-codes-client FOLDER PROMPT [THREAD]

use std::env;
use std::error::Error;

use codex_codes::{
    AskForApproval, CommandExecutionRequestApprovalResponse, FileChangeRequestApprovalResponse,
    Notification, SandboxMode, ServerMessage, ServerRequest, SyncClient, ThreadResumeParams,
    ThreadStartParams, TurnStartParams, TurnStatus, UserInput,
};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [folder, prompt, thread @ ..] = words.as_slice() else {
        return Err("usage: codex-codes-client FOLDER PROMPT [THREAD]".into());
    };
    // The client finds `codex` on PATH.
    let mut client = SyncClient::start()?;
    let (thread_id, earlier_turns) = match thread.first() {
        Some(id) => {
            let resumed = client.thread_resume(&ThreadResumeParams {
                thread_id: id.clone(),
                ..Default::default()
            })?;
            (resumed.thread.id, resumed.thread.turns.len())
        }
        None => {
            let started = client.thread_start(&ThreadStartParams {
                cwd: Some(folder.clone()),
                approval_policy: Some(AskForApproval::OnRequest),
                sandbox: Some(SandboxMode::Workspace_write),
                ..Default::default()
            })?;
            (started.thread.id, 0)
        }
    };
    client.turn_start(&TurnStartParams {
        thread_id: thread_id.clone(),
        input: vec![UserInput::Text {
            text: prompt.clone(),
            text_elements: None,
        }],
        ..Default::default()
    })?;

    let mut text = String::new();
    let mut approved = Vec::new();
    let status = loop {
        let message = client.next_message()?.ok_or("the server ended")?;
        match message {
            ServerMessage::Notification(Notification::AgentMessageDelta(it)) => {
                text.push_str(&it.delta);
            }
            ServerMessage::Notification(Notification::TurnCompleted(it)) => break it.turn.status,
            ServerMessage::Notification(_) => {}
            ServerMessage::Request { id, request } => match request {
                ServerRequest::CmdExecApproval(it) => {
                    approved.push(it.command.unwrap_or_default());
                    client.respond(id, &CommandExecutionRequestApprovalResponse::accept())?;
                }
                ServerRequest::FileChangeApproval(_) => {
                    approved.push("a change of files".to_owned());
                    client.respond(id, &FileChangeRequestApprovalResponse::accept())?;
                }
                other => return Err(format!("unexpected request {}", other.method()).into()),
            },
        }
    };
    println!(
        "{}",
        json!({
            "thread": thread_id,
            "earlierTurns": earlier_turns,
            "text": text,
            "approved": approved,
            "completed": status == TurnStatus::Completed,
        })
    );
    client.shutdown()?;
    Ok(())
}
