//! Questions that wait for someone while nobody is there.

use std::time::Duration;

use raddle_core::policy::UnattendedPolicy;
use raddle_core::ports::{WebhookDecision, WebhookRequest};
use raddle_core::{
    AnswerRequest, Ask, ChangeKind, Command, FileChange, ItemBody, OpenRequest, POLICY,
    RequestAnswer, RequestNumber, ask,
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::Task;

/// Who answers what was put to an address.
const WEBHOOK: &str = "webhook";

/// How long a question may be that is put to an address. One that is longer is a no in the end.
const QUESTION_BYTES_MAX: usize = 256 << 10;

impl Task {
    /// While nobody is there who could answer, a tool of a client's is given up in time, and what may be is put to
    /// whom the rules name. Whoever comes back is asked again and has all the time there is.
    pub(super) fn start_unattended(&mut self) {
        let open = self.owner.thread().requests();
        let alone: Vec<RequestNumber> = open
            .map(|(number, _)| number)
            .filter(|it| !self.could_be_answered(*it))
            .collect();
        self.unattended.retain(|request, waiting| {
            let is_alone = alone.contains(request);
            if !is_alone {
                waiting.abort();
            }
            is_alone
        });
        for request in alone {
            if !self.unattended.contains_key(&request)
                && let Some(waiting) = self.wait_for_someone(request)
            {
                self.unattended.insert(request, waiting);
            }
        }
    }

    /// Whether someone hears of a request who has not said that they cannot answer it.
    fn could_be_answered(&self, request: RequestNumber) -> bool {
        !self.pending_subscribers.is_empty() || self.able(request).next().is_some()
    }

    fn wait_for_someone(&self, request: RequestNumber) -> Option<AbortHandle> {
        let mut open = self.owner.thread().requests();
        let (_, open) = open.find(|(number, _)| *number == request)?;
        let waiting = match &open.ask {
            Ask::ClientTool {} => tokio::spawn(self.give_up_in_time(request)),
            Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) => {
                tokio::spawn(self.send_to_webhook(request, open))
            }
            // Nobody but the user can say what the user says, and nobody's silence gives rights.
            Ask::Permissions(_) | Ask::Questions(_) | Ask::Elicitation(_) => return None,
        };
        Some(waiting.abort_handle())
    }

    fn give_up_in_time(&self, request: RequestNumber) -> impl Future<Output = ()> + use<> {
        let (hands, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        async move {
            // Without rules nothing is decided, so it waits. Who only answers questions cannot run a tool.
            let unattended = hands.policy().await.map(|it| it.unattended());
            let Some(after_ms) = unattended.and_then(|it| it.after_ms()) else {
                return;
            };
            let after = Duration::from_millis(after_ms);
            tokio::time::sleep(after).await;
            let message = format!("for {after:?} no client was there that could run this tool");
            let answer = answered(request, POLICY, RequestAnswer::Failed { message });
            let _ = reporter.send(answer).await;
        }
    }

    /// Puts a question to an address, if the rules name one. Without an answer it is over at its deadline.
    fn send_to_webhook(
        &self,
        request: RequestNumber,
        open: &OpenRequest,
    ) -> impl Future<Output = ()> + use<> {
        let (hands, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        let question = self.question(request, open);
        let left = open.expires_at.map(|at| at.since(self.shared.now()));
        let (thread, left) = (self.id, left.and_then(|ms| u64::try_from(ms).ok()));
        async move {
            let unattended = hands.policy().await.map(|it| it.unattended());
            let Some(UnattendedPolicy::Webhook {
                after_ms,
                url,
                token_env,
            }) = unattended
            else {
                return;
            };
            let Some(question) = question else {
                return tracing::warn!(%thread, %request, "a question is too long to be put to a webhook");
            };
            let put = WebhookRequest {
                url,
                token_env,
                question,
                within: Duration::from_millis(left.unwrap_or(after_ms)),
            };
            let answer = match hands.webhook.send(put).await {
                Ok(WebhookDecision::Accept) => RequestAnswer::Accept {},
                Ok(WebhookDecision::Decline) => RequestAnswer::Decline {},
                Err(why) => {
                    return tracing::warn!(%thread, %request, why, "a webhook gave no answer");
                }
            };
            let _ = reporter.send(answered(request, WEBHOOK, answer)).await;
        }
    }

    /// A question as clients are asked it, with what they know beside it.
    fn question(&self, request: RequestNumber, open: &OpenRequest) -> Option<Value> {
        let thread = self.owner.thread();
        let (id, method, params) = ask(thread, request)?;
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

/// The file that a change names, and where it moves it.
fn changed_paths(change: &FileChange) -> impl Iterator<Item = &str> {
    let target = match &change.kind {
        ChangeKind::Update { moved_to } => moved_to.as_deref(),
        ChangeKind::Add {} | ChangeKind::Delete {} => None,
    };
    std::iter::once(change.path.as_str()).chain(target)
}

fn answered(request: RequestNumber, by: &str, answer: RequestAnswer) -> Command {
    Command::AnswerRequest(Box::new(AnswerRequest {
        request,
        by: by.to_owned(),
        answer,
    }))
}
