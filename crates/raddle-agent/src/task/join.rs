//! Those who come to hear of the thread.

use std::pin::pin;
use std::sync::Arc;

use raddle_core::ports::Waiting;
use raddle_core::{
    ChangeSettings, Command, Cursor, Envelope, RequestNumber, Seq, Token, tell_goal, tell_open,
    tell_usage,
};
use tokio::time::timeout;

use super::{PATIENCE, Task};
use crate::threads::{AgentError, Subscribed};
use crate::{Heard, Listener};

/// Someone who is about to hear of the thread.
pub(crate) struct Subscriber {
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) reply: SubscribeReply,
    pub(crate) usage: Usage,
    /// Whether it comes back to a thread, and is told how its goal stands.
    pub(crate) comes_back: bool,
}

/// Answers a new subscriber. What it returns is waited for before anything else happens in the thread, so
/// that the answer may be read from the journal and be exact; it says whether there was an answer.
pub(crate) type SubscribeReply =
    Box<dyn FnOnce(Result<Subscribed, AgentError>) -> Option<Waiting<'static, bool>> + Send>;

/// Whether a new subscriber is told what the model has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    Told,
    NotTold,
}

/// A subscriber who is being answered.
pub(super) struct Joining {
    listener: Arc<dyn Listener>,
    usage: Usage,
    comes_back: bool,
    answer: Waiting<'static, bool>,
}

impl Task {
    /// Answers a new subscriber, and then it hears.
    pub(super) fn introduce(
        &mut self,
        subscriber: Subscriber,
        cursor: Cursor,
        after: Seq,
        head: Seq,
    ) {
        let Subscriber {
            listener,
            reply,
            usage,
            comes_back,
        } = subscriber;
        let answer = reply(Ok(Subscribed {
            thread: Box::new(self.owner.thread().clone()),
            cursor,
            after,
            head,
        }));
        match answer {
            None => self.welcome(listener, usage, comes_back),
            Some(answer) => self.joining.push_back(Joining {
                listener,
                usage,
                comes_back,
                answer,
            }),
        }
    }

    /// Waits for the answers to those who come. Nothing is appended meanwhile, so what they read is where
    /// they begin to hear.
    pub(super) async fn let_in(&mut self) {
        while let Some(joining) = self.joining.pop_front() {
            let Joining {
                listener,
                usage,
                comes_back,
                answer,
            } = joining;
            let mut answer = pin!(timeout(PATIENCE, answer));
            let answered = loop {
                tokio::select! {
                    biased;
                    answered = &mut answer => break answered.unwrap_or(false),
                    message = self.inbox.recv(), if !self.forsaken => {
                        self.came(message);
                        self.show_to_lookers();
                    }
                }
            };
            if answered {
                self.welcome(listener, usage, comes_back);
            }
        }
        let held = std::mem::take(&mut self.held);
        self.act(held);
    }

    /// From here on it hears: first how things stand and what is open, then what is still asked, then what
    /// happens.
    fn welcome(&mut self, listener: Arc<dyn Listener>, usage: Usage, comes_back: bool) {
        self.unseat(&listener);
        self.seats.push(self.readers.seat(listener.clone()));
        self.is_known = true;
        let thread = self.owner.thread();
        let used = tell_usage(thread).filter(|_| usage == Usage::Told);
        let goal = tell_goal(thread).filter(|_| comes_back);
        let open = tell_open(thread);
        let asked: Vec<RequestNumber> = thread.requests().map(|(number, _)| number).collect();
        for notification in used.into_iter().chain(goal).chain(open) {
            listener.hear(&Heard::Told {
                notification: Arc::new(notification),
                seq: None,
            });
        }
        for request in asked {
            self.ask(request, Some(&*listener));
        }
    }

    /// Someone hears of the thread no more; whether it had.
    pub(super) fn unseat(&mut self, listener: &Arc<dyn Listener>) -> bool {
        let at = self.seats.iter().position(|seat| seat.is(listener));
        at.map(|at| self.seats.remove(at).clear()).is_some()
    }

    /// What a newcomer wants otherwise counts only where nobody else is and nothing runs.
    pub(super) fn change_for(&mut self, change: Option<Box<ChangeSettings>>) {
        // What was ordered before and is not carried out yet may be a turn.
        let is_free = self.seats.is_empty()
            && self.callers.is_empty()
            && self.owner.thread().turn().is_none();
        let Some(change) = change.filter(|_| is_free) else {
            return;
        };
        self.tokens += 1;
        let change = Command::ChangeSettings(change);
        // Without room the newcomer is refused as well.
        let _ = self
            .owner
            .offer(Envelope::order(Token(self.tokens), change));
    }
}
