//! Messages that wait for the next round: those of clients first, then reports of work.

use std::collections::VecDeque;

use super::IdempotentRequest;
use crate::{Command, Seq};

/// Limit: commands of clients that wait for one thread (64 more wait in its channel); beyond it,
/// the server rejects the request with -32001.
fn clients_max() -> usize {
    crate::bugs::bound(256, 5)
}

/// Maximum number of reports of work that may wait. Their sources wait for capacity.
fn work_max() -> usize {
    crate::bugs::bound(1024, 8)
}

/// Names a caller that waits for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// A message for the inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum Envelope {
    /// A command to the thread.
    Command {
        /// The command to decide.
        command: Command,
        /// Caller that waits for the outcome; `None` for reports of work.
        token: Option<Token>,
        /// Idempotency data, if the command may be sent again.
        key: Option<Box<IdempotentRequest>>,
    },
    /// A client subscribes to the thread.
    Subscribe {
        /// Token of the subscriber.
        token: Token,
        /// Last number that it received; `None` if it starts with a snapshot.
        cursor: Option<Seq>,
    },
}

impl Envelope {
    /// Creates the envelope of a client's command.
    pub fn command(token: Token, command: Command) -> Self {
        Self::Command {
            command,
            token: Some(token),
            key: None,
        }
    }

    /// Creates the envelope of a report of work.
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

/// Messages that wait for the next round.
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

    /// Returns the next message. A full round accepts no more reports, but still every client.
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
