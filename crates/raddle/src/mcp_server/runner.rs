//! Threads for the tools: opened, and their turns run to the end.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use raddle_client::{CallError, Client, ThreadFollower};
use raddle_plugin::mcp_server::{
    CallContext, NewThread, ThreadTarget, TurnReport, TurnRequest, TurnRunner,
};
use raddle_protocol::methods::{ThreadDelete, TurnStart};
use raddle_protocol::{
    AskForApproval, SandboxMode, ThreadDeleteParams, ThreadId, ThreadResumeParams,
    ThreadStartParams, ThreadStatus, TurnId, TurnStartParams, UserInput,
};
use serde_json::Value;

use super::turn_call::TurnCall;

/// Runs turns as a client of the server.
#[derive(Debug)]
pub(crate) struct ThreadRunner {
    client: Client,
}

impl TurnRunner for ThreadRunner {
    async fn run(&self, request: TurnRequest, context: CallContext) -> TurnReport {
        let is_new = matches!(request.thread, ThreadTarget::New(_));
        let follower = match self.open(request.thread).await {
            Ok(follower) => follower,
            Err(error) => return failed(None, format!("{error:#}")),
        };
        let id = follower.id();
        if matches!(follower.thread().thread.status, ThreadStatus::Active(_)) {
            let why = "a turn runs in this thread; call again when it has ended";
            return failed(Some(id), why.to_owned());
        }
        if context.is_cancelled() {
            let is_deleted = is_new && self.delete(follower).await;
            return failed(
                (!is_deleted).then_some(id),
                "the call was cancelled".to_owned(),
            );
        }
        match self.start_turn(id, request.prompt).await {
            Ok(turn) => TurnCall::new(follower, turn, context).run().await,
            Err(error) => {
                let is_unused = is_new && matches!(error, CallError::Refused(_));
                let is_deleted = is_unused && self.delete(follower).await;
                let why = format!("the turn cannot be started: {}", text(&error));
                failed((!is_deleted).then_some(id), why)
            }
        }
    }
}

impl ThreadRunner {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Starts or resumes the thread.
    async fn open(&self, thread: ThreadTarget) -> Result<ThreadFollower> {
        let opened = match thread {
            ThreadTarget::New(settings) => {
                let cwd = settings.cwd.as_deref().map(folder).transpose()?;
                self.client.start(start_params(*settings, cwd)).await
            }
            ThreadTarget::Existing(id) => {
                let id: ThreadId = id.parse().map_err(|_| {
                    anyhow!("`{id}` is not the id of a thread; use the threadId of a result")
                })?;
                self.client.resume(resume_params(id)).await
            }
        };
        opened.map_err(|error| anyhow!("the thread cannot be opened: {}", text(&error)))
    }

    async fn start_turn(&self, thread: ThreadId, prompt: String) -> Result<TurnId, CallError> {
        let params = TurnStartParams::of(thread, vec![UserInput::text(prompt)]);
        let started = self.client.call::<TurnStart>(params).await?;
        Ok(started.turn.id)
    }

    /// Deletes a new thread that has no turn.
    async fn delete(&self, follower: ThreadFollower) -> bool {
        let params = ThreadDeleteParams {
            thread_id: follower.id(),
            client_request_id: None,
        };
        drop(follower);
        self.client.call::<ThreadDelete>(params).await.is_ok()
    }
}

fn start_params(settings: NewThread, cwd: Option<String>) -> ThreadStartParams {
    let policy = settings.approval_policy.map(Value::String);
    ThreadStartParams {
        // The arguments were checked: both are known values.
        approval_policy: policy.and_then(|it| serde_json::from_value::<AskForApproval>(it).ok()),
        sandbox: settings.sandbox.map(|it| SandboxMode::from(it.as_str())),
        base_instructions: settings.base_instructions,
        config: settings.config,
        cwd,
        developer_instructions: settings.developer_instructions,
        model: settings.model,
        ..ThreadStartParams::default()
    }
}

fn resume_params(id: ThreadId) -> ThreadResumeParams {
    ThreadResumeParams {
        exclude_turns: true,
        ..ThreadResumeParams::of(id)
    }
}

/// Returns the real path of a folder; a relative path is relative to the folder of the process.
fn folder(path: &Path) -> Result<String> {
    let unusable = || {
        let path = path.display();
        format!("the thread cannot work in {path}; name an existing folder")
    };
    let full = std::fs::canonicalize(path).with_context(unusable)?;
    ensure!(full.is_dir(), "{}: it is no folder", unusable());
    Ok(full.display().to_string())
}

/// Returns the server's message alone.
fn text(error: &CallError) -> String {
    match error {
        CallError::Refused(error) => error.message.to_string(),
        CallError::AlreadyFollowed => "another call runs in it; wait for its result".to_owned(),
        error => error.to_string(),
    }
}

fn failed(thread: Option<ThreadId>, text: String) -> TurnReport {
    TurnReport {
        thread_id: thread.map(|it| it.to_string()),
        text,
        is_error: true,
    }
}
