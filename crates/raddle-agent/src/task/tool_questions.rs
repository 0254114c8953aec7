//! Questions of running tools: each becomes a request to the user, whose answer returns to the
//! tool.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use raddle_core::ports::{BoxFuture, QuestionSink};
use raddle_core::{
    ApprovalPolicy, Ask, AskForTool, Command, Envelope, ItemId, POLICY, RequestAnswer,
    RequestNumber, RequestOpened, Resolution, Timestamp, Token,
};
use tokio::sync::{mpsc, oneshot};

use super::Task;
use crate::tool_gate::{ToolGate, after};

/// Capacity of the channel of questions; tools wait when it is full.
pub(super) const QUESTIONS: usize = 16;

/// A question of a running tool.
pub(super) struct ToolQuestion {
    command: AskForTool,
    /// Dropped if the question is not asked.
    reply: oneshot::Sender<Resolution>,
}

/// Sends the questions of one tool call to the task of its thread.
pub(super) struct TaskQuestions {
    pub(super) sender: mpsc::Sender<ToolQuestion>,
    pub(super) gate: Arc<ToolGate>,
    pub(super) approval: ApprovalPolicy,
    pub(super) item: ItemId,
    pub(super) clock: fn() -> Timestamp,
}

impl QuestionSink for TaskQuestions {
    fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution> {
        let may_ask =
            !matches!(ask, Ask::Elicitation(_)) || self.approval.may_ask(ApprovalPolicy::MCP);
        let (sender, gate, clock) = (self.sender.clone(), self.gate.clone(), self.clock);
        let item = self.item.clone();
        Box::pin(async move {
            // Without rules there is no deadline, and no decision.
            let policy = gate.policy().await.filter(|_| may_ask);
            let Some(policy) = policy else {
                return Resolution::Answered {
                    by: POLICY.to_owned(),
                    answer: Box::new(RequestAnswer::Decline {}),
                };
            };
            let after_ms = policy.unattended().after_ms();
            let (reply, resolution) = oneshot::channel();
            let command = AskForTool {
                item,
                ask,
                expires_at: after_ms.map(|ms| after(clock(), ms)),
            };
            if sender.send(ToolQuestion { command, reply }).await.is_err() {
                return Resolution::Withdrawn {};
            }
            resolution.await.unwrap_or(Resolution::Withdrawn {})
        })
    }
}

/// The questions of a thread's tools that have no answer.
#[derive(Default)]
pub(super) struct ToolQuestions {
    /// Questions that are not stored yet, in the order of their commands.
    unstored: VecDeque<UnstoredQuestion>,
    open: BTreeMap<RequestNumber, oneshot::Sender<Resolution>>,
}

struct UnstoredQuestion {
    token: Token,
    item: ItemId,
    reply: oneshot::Sender<Resolution>,
}

impl ToolQuestions {
    /// Removes a question whose command was refused.
    pub(super) fn refused(&mut self, token: Token) {
        self.unstored.retain(|it| it.token != token);
    }

    /// Notes that a request is stored. It is the oldest question of its item, if it is one.
    pub(super) fn opened(&mut self, opened: &RequestOpened) {
        let mut unstored = self.unstored.iter();
        let Some(index) = unstored.position(|it| it.item == opened.item) else {
            return;
        };
        if let Some(question) = self.unstored.remove(index) {
            self.open.insert(opened.request, question.reply);
        }
    }

    /// Passes the end of a request to its tool.
    pub(super) fn resolved(&mut self, request: RequestNumber, resolution: Resolution) {
        if let Some(reply) = self.open.remove(&request) {
            // The tool may have ended.
            let _ = reply.send(resolution);
        }
    }

    /// Waits until a tool no longer needs the answer to an open request, and returns the request.
    pub(super) async fn abandoned(&mut self) -> RequestNumber {
        poll_fn(|context| {
            let mut open = self.open.iter_mut();
            let mut is_closed =
                |reply: &mut oneshot::Sender<_>| reply.poll_closed(context).is_ready();
            let closed = open.find_map(|(request, reply)| is_closed(reply).then_some(*request));
            let Some(request) = closed else {
                return Poll::Pending;
            };
            self.open.remove(&request);
            Poll::Ready(request)
        })
        .await
    }
}

impl Task {
    /// Offers the question of a tool to the next round.
    pub(super) fn offer_question(&mut self, question: ToolQuestion) {
        let ToolQuestion { command, reply } = question;
        let Some(reply) = self.left_questions.attach(&command.ask, reply) else {
            return;
        };
        self.tokens += 1;
        let token = Token(self.tokens);
        let item = command.item.clone();
        let envelope = Envelope::command(token, Command::AskForTool(Box::new(command)));
        if self.writer.offer(envelope).is_ok() {
            let unstored = UnstoredQuestion { token, item, reply };
            self.tool_questions.unstored.push_back(unstored);
        }
    }

    /// Withdraws a request whose tool no longer needs the answer.
    pub(super) fn withdraw_question(&mut self, request: RequestNumber) {
        self.tokens += 1;
        let command = Command::WithdrawRequest(request);
        // Without capacity the request stays open until its tool ends.
        let _ = self
            .writer
            .offer(Envelope::command(Token(self.tokens), command));
    }
}
