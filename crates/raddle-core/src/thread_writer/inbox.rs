//! What came in and waits for the next round: clients first, then the work's reports.

use std::collections::VecDeque;

use super::IdempotentRequest;
use crate::{Command, Seq};

/// How many commands of clients may wait.
fn clients_max() -> usize {
    crate::bugs::bound(256, 5)
}

/// How many reports of work may wait. Whoever reports waits for room.
fn work_max() -> usize {
    crate::bugs::bound(1024, 8)
}

/// Names a caller who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Something for the inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum Envelope {
    /// An order.
    Command {
        /// The order.
        command: Command,
        /// Who waits for its outcome; nobody for reports of work.
        token: Option<Token>,
        /// Makes it safe to send again.
        key: Option<Box<IdempotentRequest>>,
    },
    /// A client wants to hear of the thread.
    Subscribe {
        /// Who.
        token: Token,
        /// The last number it saw; nothing if it starts with a snapshot.
        seen: Option<Seq>,
    },
}

impl Envelope {
    /// A client's order.
    pub fn command(token: Token, command: Command) -> Self {
        Self::Command {
            command,
            token: Some(token),
            key: None,
        }
    }

    /// A report of work.
    pub fn report(command: Command) -> Self {
        Self::Command {
            command,
            token: None,
            key: None,
        }
    }

    fn token(&self) -> Option<Token> {
        match self {
            Self::Command { token, .. } => *token,
            Self::Subscribe { token, .. } => Some(*token),
        }
    }
}

/// What waits.
#[derive(Debug, Default)]
pub struct Inbox {
    clients: VecDeque<Envelope>,
    work: VecDeque<Envelope>,
}

impl Inbox {
    pub(super) fn offer(&mut self, envelope: Envelope) -> Result<(), Box<Envelope>> {
        let (queue, max) = match envelope.token() {
            Some(_) => (&mut self.clients, clients_max()),
            None => (&mut self.work, work_max()),
        };
        if queue.len() >= max {
            return Err(Box::new(envelope));
        }
        queue.push_back(envelope);
        Ok(())
    }

    /// Whether one more report of work may wait.
    pub(super) fn has_capacity(&self) -> bool {
        self.work.len() < work_max()
    }

    /// The next one. A round that is full takes no more work, but still every client.
    pub(super) fn next(&mut self, full: bool) -> Option<Envelope> {
        let work = || (!full).then_some(());
        self.clients
            .pop_front()
            .or_else(|| work().and_then(|()| self.work.pop_front()))
    }

    pub(super) fn drain(&mut self) -> Vec<crate::Token> {
        self.work.clear();
        let clients = std::mem::take(&mut self.clients);
        clients.iter().filter_map(Envelope::token).collect()
    }
}
