//! The approval of the demo: received from a server, and answered by the user or without one.

use std::io::{self, BufRead};

use anyhow::{Context, Result, bail};
use raddle_client::{CallError, Client, OpenQuestion, ServerQuestion, ThreadEvent, ThreadFollower};
use raddle_protocol::{
    FileChangeApprovalDecision, FileChangeRequestApprovalResponse, Notification, RequestId,
    ThreadItem,
};

use super::transcript::Transcript;

const QUESTION: &str = "Allow the change? [y/n] ";

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerSource {
    /// The user is asked.
    Terminal,
    /// The option `--yes` answers.
    YesOption,
    /// There is no terminal, so the demo approves the change itself.
    NoTerminal,
}

/// An approval request that is not answered.
#[derive(Debug)]
pub(super) struct PendingApproval {
    pub(super) id: RequestId,
    /// The diffs of the files, one after another.
    pub(super) diff: String,
}

impl PendingApproval {
    /// Reads events of the thread until a change of files needs approval.
    pub(super) async fn next(follow: &mut ThreadFollower) -> Result<Self> {
        loop {
            let event = follow.next().await;
            match event.context("the server ended before it asked for approval")? {
                ThreadEvent::Question(OpenQuestion {
                    id,
                    question: ServerQuestion::FileChange(params),
                }) => {
                    let item = follow.thread().item(&params.turn_id, &params.item_id);
                    let Some(ThreadItem::FileChange(item)) = item else {
                        bail!("the approval request names no change of files");
                    };
                    let diffs = item.changes.iter().map(|it| it.diff.as_str());
                    let diff = diffs.collect();
                    return Ok(Self { id, diff });
                }
                ThreadEvent::Notification { notification, .. } => {
                    if let Notification::TurnCompleted(it) = *notification {
                        let why = it.turn.error.map(|it| format!(": {}", it.message));
                        let why = why.unwrap_or_default();
                        bail!("the turn ended without an approval request{why}");
                    }
                }
                ThreadEvent::Lost { why } => bail!("the thread was lost: {why}"),
                _ => {}
            }
        }
    }

    pub(super) async fn answer(
        &self,
        client: &Client,
        decision: FileChangeApprovalDecision,
    ) -> Result<(), CallError> {
        let response = FileChangeRequestApprovalResponse { decision };
        client.answer(&self.id, &response).await
    }
}

/// Asks the user, or says how the request is answered without one.
pub(super) async fn ask(
    source: AnswerSource,
    transcript: &mut Transcript,
) -> Result<FileChangeApprovalDecision> {
    let without_user = match source {
        AnswerSource::Terminal => None,
        AnswerSource::YesOption => Some("y (by --yes)"),
        AnswerSource::NoTerminal => Some("y (by the demo, because there is no terminal)"),
    };
    if let Some(answer) = without_user {
        transcript.line("", &format!("{QUESTION}{answer}"))?;
        return Ok(FileChangeApprovalDecision::Accept);
    }
    loop {
        transcript.prompt(QUESTION)?;
        let Some(line) = tokio::task::spawn_blocking(typed_line).await?? else {
            bail!("no answer came; `raddle demo --yes` asks nothing");
        };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(FileChangeApprovalDecision::Accept),
            "n" | "no" => return Ok(FileChangeApprovalDecision::Decline),
            _ => {}
        }
    }
}

/// Returns the next line of stdin, or `None` at its end.
fn typed_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then_some(line))
}
