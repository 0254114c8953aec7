//! A running turn of a call: followed to its end, with its approval requests and its progress.

use std::collections::HashMap;
use std::time::Duration;

use raddle_client::{OpenQuestion, ServerQuestion, ThreadEvent, ThreadFollower};
use raddle_console::one_line;
use raddle_plugin::mcp_server::{CallContext, TurnReport};
use raddle_protocol::methods::TurnInterrupt;
use raddle_protocol::{
    Notification, RequestId, ThreadItem, Turn, TurnId, TurnInterruptParams, TurnStatus,
};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::{approvals, elicitations};

/// How long an interrupted turn may take to end.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason for the agent if no client can answer its request.
const UNABLE: &str = "the MCP client cannot ask its user";

/// The maximum length of a progress message.
const STEP_LETTERS: usize = 200;

/// A turn and the call that waits for it.
#[derive(Debug)]
pub(crate) struct TurnCall {
    follower: ThreadFollower,
    turn: TurnId,
    context: CallContext,
    /// The last message of the agent in this turn.
    message: Option<String>,
    /// The questions that the client has not answered. Dropping them withdraws them.
    questions: JoinSet<()>,
    open: HashMap<RequestId, AbortHandle>,
    /// When to give up on the turn, once it is interrupted.
    deadline: Option<Instant>,
}

impl TurnCall {
    pub(crate) fn new(follower: ThreadFollower, turn: TurnId, context: CallContext) -> Self {
        Self {
            follower,
            turn,
            context,
            message: None,
            questions: JoinSet::new(),
            open: HashMap::new(),
            deadline: None,
        }
    }

    /// Follows the turn to its end.
    pub(crate) async fn run(mut self) -> TurnReport {
        loop {
            let deadline = self.deadline;
            tokio::select! {
                event = self.follower.next() => {
                    let ended = match event {
                        Some(event) => self.on_event(event),
                        None => Some(self.failed("the server is gone".to_owned())),
                    };
                    if let Some(report) = ended {
                        return report;
                    }
                }
                () = self.context.cancelled(), if deadline.is_none() => self.interrupt().await,
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return self.failed("the turn did not end after its interruption".to_owned());
                }
                Some(_) = self.questions.join_next() => {}
            }
        }
    }

    fn on_event(&mut self, event: ThreadEvent) -> Option<TurnReport> {
        match event {
            ThreadEvent::Notification { notification, .. } => self.on_notification(*notification),
            ThreadEvent::Question(question) => {
                self.ask(question);
                None
            }
            // The turn may have completed before the reset.
            ThreadEvent::Reset(head) => {
                let mut turns = head.thread.turns.into_iter();
                let ours = turns.rfind(|it| it.id == self.turn)?;
                let last = ours.items.iter().rev().find_map(message_of);
                self.message = last.or(self.message.take());
                (ours.status != TurnStatus::InProgress).then(|| self.report(&ours))
            }
            ThreadEvent::Lost { why } => Some(self.failed(format!("the thread was lost: {why}"))),
            ThreadEvent::Disconnected { why } => {
                tracing::warn!(
                    why,
                    "the server of the threads was lost; going on with another"
                );
                None
            }
            ThreadEvent::Reconnected | ThreadEvent::Unknown { .. } => None,
        }
    }

    fn on_notification(&mut self, notification: Notification) -> Option<TurnReport> {
        match notification {
            Notification::TurnCompleted(it) if it.turn.id == self.turn => {
                return Some(self.report(&it.turn));
            }
            Notification::ItemStarted(it) if it.turn_id == self.turn => {
                if let Some(step) = step(&it.item) {
                    self.context.report_step(&one_line(&step, STEP_LETTERS));
                }
            }
            Notification::ItemCompleted(it) if it.turn_id == self.turn => {
                if let Some(message) = message_of(&it.item) {
                    self.context.report_step(&one_line(&message, STEP_LETTERS));
                    self.message = Some(message);
                }
            }
            Notification::ServerRequestResolved(it) => {
                if let Some(question) = self.open.remove(&it.request_id) {
                    question.abort();
                }
            }
            _ => {}
        }
        None
    }

    /// Puts a question of the server to the client's user.
    fn ask(&mut self, open: OpenQuestion) {
        if matches!(open.question, ServerQuestion::Tool(_)) {
            // The handler of requests has answered it.
            return;
        }
        if open.question.turn().is_some_and(|it| *it != self.turn) {
            // Another client's turn.
            return;
        }
        let form = approvals::form(&open.question, self.follower.thread());
        let OpenQuestion { id, question } = open;
        let (context, client) = (self.context.clone(), self.follower.client().clone());
        let request = id.clone();
        let asked = self.questions.spawn(async move {
            let answer = match (&question, form) {
                (ServerQuestion::Elicitation(it), _) => {
                    let answer = elicitations::ask(&context, it).await;
                    answer.and_then(|it| serde_json::to_value(it).ok())
                }
                (_, Some(form)) => {
                    let answer = context.ask(&form).await;
                    approvals::answer(&question, &form, &answer)
                }
                (_, None) => None,
            };
            let sent = match answer {
                Some(answer) => client.answer(&request, &answer).await,
                // Another client of the thread may answer.
                None => client.cannot_answer(&request, UNABLE).await,
            };
            if let Err(error) = sent {
                tracing::warn!(%error, "an answer of the MCP client was lost");
            }
        });
        if let Some(before) = self.open.insert(id, asked) {
            before.abort();
        }
    }

    async fn interrupt(&mut self) {
        self.deadline = Some(Instant::now() + INTERRUPT_TIMEOUT);
        self.questions.abort_all();
        let params = TurnInterruptParams {
            thread_id: self.follower.id(),
            turn_id: self.turn.clone(),
            client_request_id: None,
        };
        let client = self.follower.client();
        // A turn that has just ended cannot be interrupted.
        if let Err(error) = client.call::<TurnInterrupt>(params).await {
            tracing::debug!(%error, "a turn was not interrupted");
        }
    }

    fn report(&mut self, turn: &Turn) -> TurnReport {
        let thread_id = Some(self.follower.id().to_string());
        let why = turn.error.as_ref().map(|it| it.message.as_str());
        let text = match &turn.status {
            TurnStatus::Completed => self.message.take().unwrap_or_default(),
            TurnStatus::Interrupted => "the turn was interrupted".to_owned(),
            _ => format!("the turn failed: {}", why.unwrap_or("no reason was given")),
        };
        TurnReport {
            thread_id,
            text,
            is_error: turn.status != TurnStatus::Completed,
        }
    }

    fn failed(&self, text: String) -> TurnReport {
        TurnReport {
            thread_id: Some(self.follower.id().to_string()),
            text,
            is_error: true,
        }
    }
}

/// Returns the text of a message of the agent.
fn message_of(item: &ThreadItem) -> Option<String> {
    match item {
        ThreadItem::AgentMessage(it) => Some(it.text.clone()),
        _ => None,
    }
}

/// Describes an item that starts, if its work may take long.
fn step(item: &ThreadItem) -> Option<String> {
    Some(match item {
        ThreadItem::CommandExecution(it) => format!("runs {}", it.command),
        ThreadItem::FileChange(it) => {
            let paths: Vec<&str> = it.changes.iter().map(|it| it.path.as_str()).collect();
            format!("changes {}", paths.join(", "))
        }
        ThreadItem::McpToolCall(it) => format!("calls {}.{}", it.server, it.tool),
        _ => return None,
    })
}
