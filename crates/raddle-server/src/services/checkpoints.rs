//! Checkpoints in requests: which one a request means, and the turn that goes with it.

pub(crate) mod wire;

use std::collections::{BTreeSet, HashSet};

use raddle_agent::{AgentError, ReplyTo, Threads};
use raddle_core::ports::{
    Checkpoint, CheckpointError, CheckpointRange, FileRestore, PageQuery, ReadError, RestoreFiles,
    TurnEntry,
};
use raddle_core::{
    ChangeSettings, Command, Item, ItemBody, ItemStatus, Refusal, SettingsChange, ThreadId, TurnId,
};
use raddle_protocol::{RestoreScope, ThreadCheckpointListParams, ThreadCheckpointListResponse};
use tokio::sync::oneshot;

use super::ServerState;
use super::threads::{self, cursors, lists};
use crate::call::Reply;
use crate::session::Session;
use crate::wire_error::WireError;

/// Page size of the search for the turns that a request reverts.
const TURNS: usize = 100;

/// Page size of the search for tools that may have changed files.
const ITEMS: usize = 100;

/// The parts of a thread that a request restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestoredParts {
    Conversation,
    Files,
    Both,
}

impl RestoredParts {
    /// Converts the requested scope. Rejects an unknown one, because the client relies on it.
    pub(crate) fn of(scope: &RestoreScope) -> Result<Self, WireError> {
        match scope {
            RestoreScope::Conversation => Ok(Self::Conversation),
            RestoreScope::Files => Ok(Self::Files),
            RestoreScope::Both => Ok(Self::Both),
            RestoreScope::Unrecognized(it) => Err(lists::unknown("what", it, RestoreScope::KNOWN)),
        }
    }

    pub(crate) fn has_files(self) -> bool {
        matches!(self, Self::Files | Self::Both)
    }

    pub(crate) fn has_conversation(self) -> bool {
        matches!(self, Self::Conversation | Self::Both)
    }
}

/// Checks that the client may read the file changes of a thread: an observer reads only those of
/// threads that it follows.
pub(crate) async fn check_readable(
    state: &ServerState,
    session: &Session,
    id: ThreadId,
) -> Result<(), WireError> {
    threads::check_exists(state, Some(id)).await?;
    match session.is_observer() && !session.followed_threads().contains(&id) {
        true => Err(WireError::NotFollowed),
        false => Ok(()),
    }
}

/// Returns a page of checkpoints, newest first. Its cursor is the id of the last one before it, so
/// a checkpoint that is added meanwhile moves no page.
pub(crate) fn page(
    mut stored: Vec<Checkpoint>,
    params: &ThreadCheckpointListParams,
) -> Result<ThreadCheckpointListResponse, WireError> {
    let id = params.thread_id;
    stored.reverse();
    let from = match &params.cursor {
        None => 0,
        Some(cursor) => {
            let last =
                cursors::position(id, cursor).map_err(|error| threads::refused(id, error))?;
            let position = stored.iter().position(|it| it.id == last);
            let refusal = || threads::refused(id, AgentError::Read(ReadError::BadCursor));
            position.ok_or_else(refusal)? + 1
        }
    };
    let limit = lists::limit(params.limit);
    let rest = stored.get(from..).unwrap_or_default();
    let page = rest.get(..limit).unwrap_or(rest);
    let has_more = page.len() < rest.len();
    let last = page.last().filter(|_| has_more);
    Ok(ThreadCheckpointListResponse {
        data: page.iter().map(wire::checkpoint).collect(),
        next_cursor: last.map(|it| cursors::cursor(id, &it.id)),
    })
}

/// Checks that the thread has the checkpoint. Returns its turn if the conversation is restored too.
pub(crate) async fn turn_before(
    state: &ServerState,
    id: ThreadId,
    checkpoint: &str,
    parts: RestoredParts,
) -> Result<Option<TurnEntry>, WireError> {
    threads::check_exists(state, Some(id)).await?;
    let stored = state.checkpoints.list(id).await?;
    let found = stored.into_iter().find(|it| it.id == checkpoint);
    let found = found.ok_or(CheckpointError::NoSuchCheckpoint)?;
    if !parts.has_conversation() {
        return Ok(None);
    }
    let Some(turn) = found.turn else {
        return Err(WireError::Refused(
            "the checkpoint is that of a restore, which has no turn in the conversation; restore \
             its files alone"
                .into(),
        ));
    };
    let found = state.threads.find(id, &turn).await;
    let found = found.map_err(|error| threads::refused(id, error))?;
    Ok(Some(found.turn))
}

/// Restores the files to their state before a turn: before its checkpoint, or the first one of a
/// later turn. Turns that were reverted without their files count as well. If there is none, no file
/// is restored. Fails if one of these turns may have changed files and has no checkpoint.
pub(crate) async fn restore_before(
    state: &ServerState,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<FileRestore, WireError> {
    match request_before(state, id, turn).await? {
        Some(request) => Ok(state.checkpoints.restore(id, request).await?),
        None => Ok(FileRestore::default()),
    }
}

/// Returns the checkpoint before which the files are as they were before a turn; `None` if the turn and
/// the later ones changed none. Fails if that is not known.
pub(crate) async fn checkpoint_before(
    state: &ServerState,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<Option<String>, WireError> {
    let request = request_before(state, id, turn).await?;
    Ok(request.map(|it| it.checkpoint))
}

/// Checks that [`restore_before`] can restore the files.
pub(crate) async fn check_before(
    state: &ServerState,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<(), WireError> {
    if let Some(request) = request_before(state, id, turn).await? {
        state.checkpoints.preview(id, request).await?;
    }
    Ok(())
}

async fn request_before(
    state: &ServerState,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<Option<RestoreFiles>, WireError> {
    let stored = state.checkpoints.list(id).await?;
    check_covered(state, id, turn, &stored).await?;
    let found = first_since(&state.threads, id, turn, stored).await;
    let found = found.map_err(|error| threads::refused(id, error))?;
    Ok(found.map(|checkpoint| RestoreFiles {
        checkpoint,
        overwrite: Vec::new(),
    }))
}

/// Fails if this turn or a later one may have changed files and has no checkpoint. Checkpoints
/// without changes are not listed, but have a diff.
async fn check_covered(
    state: &ServerState,
    id: ThreadId,
    turn: &TurnEntry,
    stored: &[Checkpoint],
) -> Result<(), WireError> {
    let turns = turns_with_writers(&state.threads, id, turn).await;
    let mut turns = turns.map_err(|error| threads::refused(id, error))?;
    let stored: HashSet<&TurnId> = stored.iter().filter_map(|it| it.turn.as_ref()).collect();
    turns.retain(|it| !stored.contains(it));
    for turn in turns {
        let read = state
            .checkpoints
            .diff(id, CheckpointRange::Turn(turn))
            .await;
        if let Err(error @ (CheckpointError::NoCheckpointOfTurn | CheckpointError::Disabled)) = read
        {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Returns this turn and later ones, if a tool that may have changed files ran in them.
async fn turns_with_writers(
    threads: &Threads,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<BTreeSet<TurnId>, AgentError> {
    let thread = threads.peek(id).await?.thread;
    let has_read_only_commands = thread.settings().sandbox.is_read_only();
    let may_write = |item: &Item| {
        let is_writer = match &item.body {
            ItemBody::Patch(_) => true,
            // The user's own command is a change of the user.
            ItemBody::Command(_) => !has_read_only_commands && !item.is_users_command(),
            _ => false,
        };
        is_writer && !matches!(item.status, ItemStatus::Declined | ItemStatus::NotRun)
    };
    let mut query = PageQuery {
        limit: ITEMS,
        newest_first: true,
        cursor: None,
    };
    let mut found = BTreeSet::new();
    loop {
        let page = threads.items(id, None, query.clone()).await?;
        for entry in page.entries {
            if entry.seq < turn.from {
                return Ok(found);
            }
            if may_write(&entry.item) {
                found.insert(entry.turn);
            }
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Returns the oldest checkpoint of this turn or of a later one.
async fn first_since(
    threads: &Threads,
    id: ThreadId,
    turn: &TurnEntry,
    stored: Vec<Checkpoint>,
) -> Result<Option<String>, AgentError> {
    let later_turns = turns_since(threads, id, turn).await?;
    for checkpoint in stored {
        let Some(its_turn) = &checkpoint.turn else {
            continue;
        };
        let is_later = later_turns.contains(its_turn)
            // The clock may have been set back, so a turn of the history must not be an earlier one.
            || (checkpoint.taken_at >= turn.started_at && is_reverted(threads, id, its_turn).await?);
        if is_later {
            return Ok(Some(checkpoint.id));
        }
    }
    Ok(None)
}

/// Returns the ids of this turn and of all later ones in the history.
async fn turns_since(
    threads: &Threads,
    id: ThreadId,
    turn: &TurnEntry,
) -> Result<HashSet<TurnId>, AgentError> {
    let mut query = PageQuery {
        limit: TURNS,
        newest_first: true,
        cursor: None,
    };
    let mut found = HashSet::new();
    loop {
        let page = threads.turns(id, query.clone()).await?;
        for entry in page.entries {
            if entry.from < turn.from {
                return Ok(found);
            }
            found.insert(entry.turn);
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Whether the turn is no longer in the history.
async fn is_reverted(threads: &Threads, id: ThreadId, turn: &TurnId) -> Result<bool, AgentError> {
    match threads.find(id, turn).await {
        Ok(_) => Ok(false),
        Err(AgentError::Refused(Refusal::NoSuchTurn)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Answers a command that failed after files were restored for it: the files return to their state
/// before the restore first.
pub(crate) async fn answer_failure<R>(
    state: &ServerState,
    id: ThreadId,
    restored: Option<String>,
    failure: oneshot::Receiver<(Reply<R>, WireError)>,
) {
    // There is no failure to receive once the response is sent.
    let Ok((reply, error)) = failure.await else {
        return;
    };
    let Some(checkpoint) = restored else {
        return reply.error(error);
    };
    let request = RestoreFiles {
        checkpoint: checkpoint.clone(),
        overwrite: Vec::new(),
    };
    let undone = state.checkpoints.restore(id, request).await;
    let is_undone = undone.is_ok_and(|it| it.conflicts.is_empty());
    reply.error(match is_undone {
        true => error,
        false => WireError::FilesStayRestored {
            error: Box::new(error),
            checkpoint,
        },
    });
}

/// Answers a request that left the thread as it is. The thread stores the response if the client
/// may retry the request.
pub(crate) async fn answer_unchanged(
    threads: &Threads,
    id: ThreadId,
    principal: Option<String>,
    answer: ReplyTo,
) {
    let no_change = Command::ChangeSettings(Box::new(ChangeSettings {
        change: SettingsChange::default(),
        principal,
    }));
    threads.send_command(id, no_change, answer).await;
}
