//! Commands to threads by their ids. A thread that is not loaded is loaded first, also one that is
//! being unloaded.

use std::sync::Arc;

use raddle_core::ports::BoxFuture;
use raddle_core::{
    Archive, ChangeSettings, Command, CommandOutcome, CommandRun, IdempotencyKey, ItemId, Refusal,
    RunShell, Seq, Thread, ThreadId, TurnId,
};
use tokio::sync::mpsc::error::SendError;
use tracing::Span;

use crate::task::{AfterCommand, NewSubscriber, TaskMessage, UsageReport};
use crate::threads::{Retention, ThreadRegistry};
use crate::{AgentError, Handle, ReplyTo, SubscribeResult, Subscriber, Threads, WaitingInterrupt};

/// Result of an unsubscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsubscribeResult {
    /// The subscriber is removed.
    Done,
    /// It was not subscribed.
    NotSubscribed,
    /// The thread is not loaded.
    NotLive,
}

/// A shell command of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    /// Command line as the user typed it.
    pub line: String,
    /// Time limit, if the client set one.
    pub time_ms_max: Option<u64>,
    /// Principal of the user.
    pub principal: Option<String>,
}

/// A request to subscribe to a thread.
pub struct SubscribeRequest {
    /// The receiver of the events.
    pub subscriber: Arc<dyn Subscriber>,
    /// Changes of settings. They apply only if the thread has no other subscriber and nothing runs.
    pub change: ChangeSettings,
    /// Whether the subscriber receives the token usage.
    pub with_usage: bool,
    /// The last record that it received, if it continues from there.
    pub cursor: Option<Seq>,
}

impl Threads {
    /// Sends a command. The reply is called once the resulting records are stored, before any
    /// subscriber is notified. Waits only for a slot in the thread's inbox, which keeps commands in
    /// order.
    ///
    /// A command that starts a turn also carries briefs: notes to the model on its folder, date,
    /// permissions, `AGENTS.md` files and skills. So does one that names a skill.
    pub async fn send_command(
        &self,
        id: ThreadId,
        mut command: Command,
        reply_to: impl Into<ReplyTo>,
    ) {
        let reply_to = reply_to.into();
        let may_have_briefs = matches!(
            command,
            Command::StartTurn(_)
                | Command::StartReview(_)
                | Command::StartQueued(_)
                | Command::Steer(_)
        );
        let has_input = matches!(
            command,
            Command::StartTurn(_)
                | Command::Steer(_)
                | Command::Enqueue(_)
                | Command::ChangeQueued(_)
        );
        if has_input && let Ok(handle) = self.get(id).await {
            let checked = handle.check_input(id, &mut command).await;
            if let Err(error) = checked {
                return (reply_to.reply)(Err(error));
            }
        }
        if may_have_briefs && let Ok(handle) = self.get(id).await {
            handle.brief(&mut command).await;
        }
        let message = TaskMessage::Command {
            command: Box::new(command),
            reply_to,
            after: AfterCommand::KeepLoaded,
            span: Span::current(),
        };
        self.send(id, message).await;
    }

    /// Ends hooks on input of this thread, until the result is dropped. Requests about a thread are
    /// handled in order, and a hook that hangs must not hold up an interrupt behind it.
    pub fn interrupt_hooks(&self, id: ThreadId) -> WaitingInterrupt {
        self.shared.interrupts.add(id)
    }

    /// Returns the earlier outcome of a command under this key, or `None` if there is none. The
    /// thread is only read. If the thread is deleted, its remains are removed before this returns.
    pub async fn recall(
        &self,
        id: ThreadId,
        key: &IdempotencyKey,
        fingerprint: &str,
    ) -> Result<Option<Result<CommandOutcome, Refusal>>, AgentError> {
        let now = self.shared.now();
        loop {
            while let Some(handle) = self.shared.wait_live(id).await {
                let (key, fingerprint) = (key.clone(), fingerprint.to_owned());
                let inspect = move |thread: &Thread| {
                    let exists = !thread.is_deleted();
                    exists.then(|| thread.recall(&key, &fingerprint, now))
                };
                // Otherwise the task has ended, and `peek` below reads the stored state.
                if let Ok(Some(recalled)) = handle.inspect(inspect).await {
                    return Ok(recalled);
                }
            }
            match self.peek(id).await {
                // Its remains would block another thread with the same id.
                Err(AgentError::Refused(Refusal::Deleted)) => drop(self.get(id).await?),
                peek => return Ok(peek?.thread.recall(key, fingerprint, now)),
            }
        }
    }

    /// Runs a shell command of the user in a thread. The reply is called as with
    /// [`Threads::send_command`].
    pub async fn run_shell(
        &self,
        id: ThreadId,
        user_command: UserCommand,
        reply_to: impl Into<ReplyTo>,
    ) {
        let reply_to = reply_to.into();
        let UserCommand {
            line,
            time_ms_max,
            principal,
        } = user_command;
        let settings = match self.get(id).await {
            Ok(handle) => handle.settings(),
            Err(error) => return (reply_to.reply)(Err(error)),
        };
        let command_run = self.shared.tool_gate.tools.user_command(&settings, &line);
        let command = Command::RunShell(Box::new(RunShell {
            turn: TurnId::mint(),
            item: ItemId::mint(),
            command: CommandRun {
                time_ms_max,
                ..command_run
            },
            briefs: Vec::new(),
            principal,
        }));
        self.send_command(id, command, reply_to).await;
    }

    /// Whether a thread is loaded and exists in memory only.
    pub fn is_ephemeral(&self, id: ThreadId) -> bool {
        self.live(id)
            .is_some_and(|it| it.retention == Retention::Ephemeral)
    }

    /// Hides a thread from lists and unloads it, since it is no longer needed in memory.
    pub async fn archive(
        &self,
        id: ThreadId,
        principal: Option<String>,
        reply_to: impl Into<ReplyTo>,
    ) {
        let archive = Archive {
            archived: true,
            principal,
        };
        let after = AfterCommand::Unload;
        self.set_archived(id, archive, after, reply_to.into()).await;
    }

    /// Shows a thread in lists again. Unloads it unless it is in use, so that a client must resume
    /// it before its next turn and receives the events.
    pub async fn unarchive(
        &self,
        id: ThreadId,
        principal: Option<String>,
        reply_to: impl Into<ReplyTo>,
    ) {
        let archive = Archive {
            archived: false,
            principal,
        };
        let after = AfterCommand::UnloadIdle;
        self.set_archived(id, archive, after, reply_to.into()).await;
    }

    async fn set_archived(
        &self,
        id: ThreadId,
        archive: Archive,
        after: AfterCommand,
        reply_to: ReplyTo,
    ) {
        let message = TaskMessage::Command {
            command: Box::new(Command::Archive(archive)),
            reply_to,
            after,
            span: Span::current(),
        };
        self.send(id, message).await;
    }

    /// Subscribes to a thread. The subscriber first receives the reply. Then it receives the open
    /// items, or the records after its cursor; then the open requests; then live events. An
    /// archived thread is rejected.
    pub async fn resume<F>(&self, id: ThreadId, request: SubscribeRequest, reply: F)
    where
        F: FnOnce(Result<SubscribeResult, AgentError>) -> BoxFuture<'static, bool> + Send + 'static,
    {
        let SubscribeRequest {
            subscriber,
            change,
            with_usage,
            cursor,
        } = request;
        let usage = if with_usage {
            UsageReport::Sent
        } else {
            UsageReport::Omitted
        };
        let subscriber = NewSubscriber {
            subscriber,
            reply: Box::new(|subscribed| Some(reply(subscribed))),
            usage,
            is_returning: true,
            cursor,
        };
        let subscribe = TaskMessage::Subscribe {
            subscriber,
            change: Some(Box::new(change)),
        };
        self.send(id, subscribe).await;
    }

    /// Removes a subscriber from a thread.
    pub async fn unsubscribe(
        &self,
        id: ThreadId,
        subscriber: Arc<dyn Subscriber>,
    ) -> UnsubscribeResult {
        let Some(handle) = self.live(id) else {
            return UnsubscribeResult::NotLive;
        };
        match handle.unsubscribe(subscriber).await {
            Ok(true) => UnsubscribeResult::Done,
            Ok(false) => UnsubscribeResult::NotSubscribed,
            Err(_) => UnsubscribeResult::NotLive,
        }
    }

    /// Returns the handle of a thread, if it is loaded.
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
                Err(SendError(returned)) => message = returned,
            }
        }
    }
}

impl ThreadRegistry {
    /// Sends the messages that arrived too late for an unloaded task to the next task.
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
