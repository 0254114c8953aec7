//! Requests that no attached client can answer.

use std::time::Duration;

use raddle_core::policy::UnattendedPolicy;
use raddle_core::ports::{WebhookDecision, WebhookError, WebhookRequest};
use raddle_core::{
    AnswerRequest, Ask, ChangeKind, Command, FileChange, ItemBody, OpenRequest, POLICY,
    RequestAnswer, RequestNumber, ask,
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use tracing::Instrument;

use super::Task;

/// Principal of answers by a webhook.
const WEBHOOK: &str = "webhook";

/// Limit: an approval request that is sent to a webhook; beyond it, it is not sent, and is denied
/// at its deadline.
const QUESTION_BYTES_MAX: usize = 256 << 10;

impl Task {
    /// Starts a timer for each request that no attached client can answer. A client's tool call
    /// fails after a timeout; an approval goes to the webhook of the rules. A client that returns
    /// receives the request again, and the timer is cancelled.
    pub(super) fn start_unattended(&mut self) {
        let open = self.writer.thread().requests();
        let unanswerable: Vec<RequestNumber> = open
            .map(|(number, _)| number)
            .filter(|it| !self.subscribers.could_answer(*it))
            .collect();
        self.unattended.retain(|request, timer| {
            let is_unanswerable = unanswerable.contains(request);
            if !is_unanswerable {
                timer.abort();
            }
            is_unanswerable
        });
        for request in unanswerable {
            if !self.unattended.contains_key(&request)
                && let Some(timer) = self.start_timer(request)
            {
                self.unattended.insert(request, timer);
            }
        }
    }

    fn start_timer(&self, request: RequestNumber) -> Option<AbortHandle> {
        let mut open = self.writer.thread().requests();
        let (_, open) = open.find(|(number, _)| *number == request)?;
        let span = self.turn_log.span();
        let timer = match &open.ask {
            Ask::ClientTool {} => tokio::spawn(self.fail_on_timeout(request).instrument(span)),
            Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) => {
                tokio::spawn(self.send_to_webhook(request, open).instrument(span))
            }
            // Only the user can answer these, and a timeout grants no permissions.
            Ask::Permissions(_) | Ask::Questions(_) | Ask::Elicitation(_) => return None,
        };
        Some(timer.abort_handle())
    }

    fn fail_on_timeout(&self, request: RequestNumber) -> impl Future<Output = ()> + use<> {
        let (gate, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        async move {
            // Without rules there is no decision, so it waits. A webhook cannot run a tool.
            let unattended = gate.policy().await.map(|it| it.unattended());
            let Some(after_ms) = unattended.and_then(|it| it.after_ms()) else {
                return;
            };
            let after = Duration::from_millis(after_ms);
            tokio::time::sleep(after).await;
            let message = format!("for {after:?} no client was there that could run this tool");
            let answer = answer_command(request, POLICY, RequestAnswer::Failed { message });
            let _ = reporter.send(answer).await;
        }
    }

    /// Sends a question to the webhook, if the rules name one. Without an answer it expires at its
    /// deadline.
    fn send_to_webhook(
        &self,
        request: RequestNumber,
        open: &OpenRequest,
    ) -> impl Future<Output = ()> + use<> {
        let (gate, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        let question = self.question(request, open);
        let remaining_ms = open.expires_at.map(|at| at.since(self.shared.now()));
        let (thread, remaining_ms) = (self.id, remaining_ms.and_then(|ms| u64::try_from(ms).ok()));
        async move {
            let unattended = gate.policy().await.map(|it| it.unattended());
            let Some(UnattendedPolicy::Webhook {
                after_ms,
                url,
                token_env,
            }) = unattended
            else {
                return;
            };
            let Some(question) = question else {
                return tracing::warn!(%thread, %request, "a question is too long for the webhook");
            };
            let webhook_request = WebhookRequest {
                url,
                token_env,
                question,
                timeout: Duration::from_millis(remaining_ms.unwrap_or(after_ms)),
            };
            let answer = match gate.webhook.send(webhook_request).await {
                Ok(WebhookDecision::Accept) => RequestAnswer::Accept {},
                Ok(WebhookDecision::Decline) => RequestAnswer::Decline {},
                Err(WebhookError(why)) => {
                    return tracing::warn!(%thread, %request, why, "a webhook gave no answer");
                }
            };
            let _ = reporter
                .send(answer_command(request, WEBHOOK, answer))
                .await;
        }
    }

    /// The question as clients receive it, with the context that they have.
    fn question(&self, request: RequestNumber, open: &OpenRequest) -> Option<Value> {
        let thread = self.writer.thread();
        let (id, method, mut params) = ask(thread, request)?;
        // A webhook answers about the whole change, and gets no content of files.
        if let Some(params) = params.as_object_mut() {
            params.remove("hunks");
        }
        let items = thread.turn().into_iter().flat_map(|turn| &turn.items);
        let bodies = items.filter(|it| it.item.id == open.item);
        let paths: Vec<&str> = bodies
            .filter_map(|it| match &it.item.body {
                ItemBody::Patch(patch) => Some(&patch.changes),
                _ => None,
            })
            .flatten()
            .flat_map(changed_paths)
            .collect();
        let question = json!({
            "id": id,
            "method": method,
            "params": params,
            "itemId": open.item,
            "paths": paths,
            "deadlineMs": open.expires_at.map(|at| at.0),
        });
        (question.to_string().len() <= QUESTION_BYTES_MAX).then_some(question)
    }
}

/// The path of a change, and its target if the file is moved.
fn changed_paths(change: &FileChange) -> impl Iterator<Item = &str> {
    let target = match &change.kind {
        ChangeKind::Update { moved_to } => moved_to.as_deref(),
        ChangeKind::Add {} | ChangeKind::Delete {} => None,
    };
    std::iter::once(change.path.as_str()).chain(target)
}

fn answer_command(request: RequestNumber, by: &str, answer: RequestAnswer) -> Command {
    Command::AnswerRequest(Box::new(AnswerRequest {
        request,
        by: by.to_owned(),
        answer,
    }))
}
