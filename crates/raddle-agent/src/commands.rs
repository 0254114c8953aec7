//! Orders to threads by their ids. A thread that is not live is opened, and one that is being left is
//! opened again.

use std::sync::Arc;

use raddle_core::ports::BoxFuture;
use raddle_core::{
    Archive, ChangeSettings, Command, CommandRun, ItemId, RunShell, Seq, ThreadId, TurnId,
};
use tokio::sync::mpsc::error::SendError;

use crate::task::{AfterCommand, NewSubscriber, TaskMessage, UsageReport};
use crate::threads::{Retention, ThreadRegistry};
use crate::{AgentError, Handle, ReplyTo, SubscribeResult, Subscriber, Threads};

/// What became of a wish to hear no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsubscribeResult {
    /// It hears no more.
    Done,
    /// It did not hear.
    NotSubscribed,
    /// The thread is not live.
    NotLive,
}

/// A command line of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    /// The line.
    pub line: String,
    /// How long it may run, if that is said.
    pub time_ms_max: Option<u64>,
    /// Whose it is.
    pub principal: Option<String>,
}

/// Someone who wants to hear of a thread.
pub struct SubscribeRequest {
    /// Who.
    pub subscriber: Arc<dyn Subscriber>,
    /// What is to be otherwise; it counts only where nobody else hears of the thread and nothing runs.
    pub change: ChangeSettings,
    /// Whether it is told what the model has used.
    pub with_usage: bool,
    /// The last record it was told, if it goes on from there.
    pub seen: Option<Seq>,
}

impl Threads {
    /// Gives an order. The reply is called once what it means is stored, before anyone else hears of it.
    /// Waits only for a place in the thread's inbox, which keeps the order of orders.
    ///
    /// A turn that is to start is told what there is to say about its surroundings.
    pub async fn send_command(&self, id: ThreadId, mut command: Command, owed: impl Into<ReplyTo>) {
        let owed = owed.into();
        let begins = matches!(
            command,
            Command::StartTurn(_) | Command::StartReview(_) | Command::StartQueued(_)
        );
        if begins && let Ok(handle) = self.get(id).await {
            handle.brief(&mut command).await;
        }
        let order = TaskMessage::Command {
            command,
            reply_to: owed,
            after: AfterCommand::KeepLoaded,
        };
        self.send(id, order).await;
    }

    /// Runs a command of the user's in a thread. The reply is called as with [`Threads::order`].
    pub async fn run_shell(&self, id: ThreadId, line: UserCommand, owed: impl Into<ReplyTo>) {
        let owed = owed.into();
        let UserCommand {
            line,
            time_ms_max,
            principal,
        } = line;
        let settings = match self.get(id).await {
            Ok(handle) => handle.settings(),
            Err(error) => return (owed.reply)(Err(error)),
        };
        let shown = self.shared.tool_gate.tools.user_command(&settings, &line);
        let command = Command::RunShell(Box::new(RunShell {
            turn: TurnId::mint(),
            item: ItemId::mint(),
            command: CommandRun {
                time_ms_max,
                ..shown
            },
            briefs: Vec::new(),
            principal,
        }));
        self.send_command(id, command, owed).await;
    }

    /// Whether a thread is live and in memory only.
    pub fn is_ephemeral(&self, id: ThreadId) -> bool {
        self.live(id)
            .is_some_and(|it| it.retention == Retention::Ephemeral)
    }

    /// Hides a thread from lists and leaves it, since nobody needs it in memory then.
    pub async fn archive(&self, id: ThreadId, principal: Option<String>, owed: impl Into<ReplyTo>) {
        let archive = Archive {
            archived: true,
            principal,
        };
        let order = TaskMessage::Command {
            command: Command::Archive(archive),
            reply_to: owed.into(),
            after: AfterCommand::Unload,
        };
        self.send(id, order).await;
    }

    /// Lets a listener hear of a thread. It is answered first, with whatever its answer waits for; then it
    /// is told what is open, or what it missed since the last record it saw, then what is asked, and then hears
    /// what happens.
    pub async fn resume<F>(&self, id: ThreadId, newcomer: SubscribeRequest, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) -> BoxFuture<'static, bool> + Send + 'static,
    {
        let SubscribeRequest {
            subscriber: listener,
            change,
            with_usage,
            seen,
        } = newcomer;
        let usage = if with_usage {
            UsageReport::Sent
        } else {
            UsageReport::Omitted
        };
        let subscriber = NewSubscriber {
            subscriber: listener,
            reply: Box::new(|subscribed| Some(reply(subscribed))),
            usage,
            comes_back: true,
            seen,
        };
        let subscribe = TaskMessage::Subscribe {
            subscriber,
            change: Some(Box::new(change)),
        };
        self.send(id, subscribe).await;
    }

    /// A listener hears no more of a thread.
    pub async fn unsubscribe(
        &self,
        id: ThreadId,
        listener: Arc<dyn Subscriber>,
    ) -> UnsubscribeResult {
        let Some(handle) = self.live(id) else {
            return UnsubscribeResult::NotLive;
        };
        match handle.unsubscribe(listener).await {
            Ok(true) => UnsubscribeResult::Done,
            Ok(false) => UnsubscribeResult::NotSubscribed,
            Err(_) => UnsubscribeResult::NotLive,
        }
    }

    /// A handle to a thread, if it is live.
    pub fn live(&self, id: ThreadId) -> Option<Handle> {
        let handle = self.shared.live().get(&id).cloned()?;
        (!handle.sender.is_closed()).then_some(handle)
    }

    pub(crate) async fn send(&self, id: ThreadId, mut message: TaskMessage) {
        loop {
            let handle = match self.get(id).await {
                Ok(handle) => handle,
                Err(error) => return message.refuse(error),
            };
            match handle.sender.send(message).await {
                Ok(()) => return,
                Err(SendError(back)) => message = back,
            }
        }
    }
}

impl ThreadRegistry {
    /// What came too late for a task that left its thread goes to the next one.
    pub(crate) fn forward_late(self: &Arc<Self>, id: ThreadId, late: Vec<TaskMessage>) {
        if late.is_empty() {
            return;
        }
        let threads = Threads {
            shared: self.clone(),
        };
        tokio::spawn(async move {
            for message in late {
                threads.send(id, message).await;
            }
        });
    }
}
