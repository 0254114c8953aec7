//! Threads and turns as they are on the wire.

use raddle_protocol as wire;

use super::failure;
use super::item;
use crate::ports::{Summary, TurnEntry};
use crate::{
    ApprovalPolicy, Cause, Item, LastTurn, OpenItem, OpenTurn, Reviewer, Sandbox, Seq, Status,
    Thread, ThreadSource, TurnEnd,
};

/// Converts a thread without its turns.
///
/// # Panics
///
/// If the thread was never started: there is nothing to show then.
pub fn view(thread: &Thread) -> wire::Thread {
    let identity = thread.identity.as_ref().expect("the thread was started");
    let summary = Summary::shown(thread).expect("the thread was started");
    wire::Thread {
        ephemeral: identity.ephemeral,
        status: status(thread.status()),
        ..list_view(&summary)
    }
}

/// Converts a thread in a list, which is not loaded.
pub fn list_view(summary: &Summary) -> wire::Thread {
    let origin = &summary.origin;
    let git = origin.git.as_ref().map(|git| wire::GitInfo {
        branch: git.branch.clone(),
        origin_url: git.origin.clone(),
        sha: git.sha.clone(),
    });
    wire::Thread {
        id: summary.thread,
        session_id: summary.thread,
        cli_version: origin.version.clone(),
        created_at: summary.created_at.seconds(),
        cwd: summary.cwd.clone(),
        ephemeral: false,
        model_provider: summary.provider.clone().unwrap_or_default(),
        preview: summary.preview.clone(),
        project_id: None,
        source: source(&origin.source),
        status: wire::ThreadStatus::NotLoaded,
        turns: Vec::new(),
        updated_at: summary.updated_at.seconds(),
        agent_nickname: None,
        agent_role: None,
        can_accept_direct_input: None,
        daybreak_enabled: None,
        environments: None,
        extra: None,
        forked_from_id: origin.forked_from,
        git_info: git,
        history_mode: if origin.paginated {
            wire::ThreadHistoryMode::Paginated
        } else {
            wire::ThreadHistoryMode::Legacy
        },
        model: summary.model.clone(),
        name: summary.name.clone(),
        originator: origin.originator.clone(),
        parent_thread_id: None,
        path: None,
        reasoning_effort: summary.effort.clone(),
        recency_at: Some(summary.recency_at.seconds()),
        section: None,
        section_entered_at: None,
        thread_source: origin.label.clone(),
    }
}

/// Converts a thread's status.
pub fn status(status: Status) -> wire::ThreadStatus {
    match status {
        Status::Idle => wire::ThreadStatus::Idle,
        Status::Failed => wire::ThreadStatus::SystemError,
        Status::Active {
            waits_for_approval,
            waits_for_input,
        } => {
            let mut active_flags = Vec::new();
            if waits_for_approval {
                active_flags.push(wire::ThreadActiveFlag::WaitingOnApproval);
            }
            if waits_for_input {
                active_flags.push(wire::ThreadActiveFlag::WaitingOnUserInput);
            }
            wire::ThreadStatus::Active(wire::ActiveThreadStatus { active_flags })
        }
    }
}

/// Converts a running turn, without its items.
pub(super) fn open_turn(turn: &OpenTurn) -> wire::Turn {
    turn_view(&TurnEntry {
        turn: turn.id.clone(),
        root: turn.root.clone(),
        from: Seq::ZERO,
        started_at: turn.started_at,
        ended: None,
    })
}

/// Converts a turn that ended, with its last message if it ended well.
pub(super) fn last_turn(turn: &LastTurn) -> wire::Turn {
    let well = matches!(turn.end, TurnEnd::Completed {});
    let answer = turn.answer.as_deref().filter(|_| well);
    wire::Turn {
        items: answer.map(item::whole).into_iter().collect(),
        items_view: wire::TurnItemsView::Summary,
        ..turn_view(&TurnEntry {
            turn: turn.id.clone(),
            root: turn.root.clone(),
            from: Seq::ZERO,
            started_at: turn.started_at,
            ended: Some((turn.end.clone(), turn.ended_at)),
        })
    }
}

/// Converts a turn on a page, without its items. One that has not ended is running.
pub fn turn_view(turn: &TurnEntry) -> wire::Turn {
    let ended = turn.ended.as_ref();
    let (status, error) = match ended.map(|(end, _)| end) {
        None => (wire::TurnStatus::InProgress, None),
        Some(TurnEnd::Completed {}) => (wire::TurnStatus::Completed, None),
        Some(TurnEnd::Interrupted(cause)) => (wire::TurnStatus::Interrupted, interruption(cause)),
        Some(TurnEnd::Failed(error_cause)) => {
            (wire::TurnStatus::Failed, Some(failure(error_cause)))
        }
    };
    wire::Turn {
        id: turn.turn.clone(),
        items: Vec::new(),
        status,
        completed_at: ended.map(|(_, at)| at.seconds()),
        duration_ms: ended.map(|(_, at)| at.since(turn.started_at)),
        error,
        items_view: wire::TurnItemsView::NotLoaded,
        root_turn_id: Some(turn.root.clone().unwrap_or_else(|| turn.turn.clone())),
        started_at: Some(turn.started_at.seconds()),
    }
}

/// Explains an interruption that no client asked for.
fn interruption(cause: &Cause) -> Option<wire::TurnError> {
    let message = match cause {
        Cause::OwnerLost {} => "the server ended unexpectedly during this turn; start another turn",
        Cause::Shutdown {} => "the server was shut down during this turn; start another turn",
        Cause::Client { .. }
        | Cause::Cancelled { .. }
        | Cause::Forked {}
        | Cause::BudgetSpent(_)
        | Cause::Deleted { .. } => return None,
    };
    Some(wire::TurnError {
        message: message.to_owned(),
        additional_details: None,
        codex_error_info: None,
        misalignment: None,
        class: None,
        retry_at_ms: None,
        budget: None,
    })
}

/// Converts an item with all its content.
pub fn item_view(item: &Item) -> wire::ThreadItem {
    item::whole(item)
}

/// Converts an open item, without the text that its deltas carry.
pub fn open_item_view(open: &OpenItem) -> wire::ThreadItem {
    item::open(&open.item)
}

fn source(source: &ThreadSource) -> wire::SessionSource {
    match source {
        ThreadSource::Cli => wire::SessionSource::Cli,
        ThreadSource::Editor => wire::SessionSource::Vscode,
        ThreadSource::Exec => wire::SessionSource::Exec,
        ThreadSource::AppServer => wire::SessionSource::AppServer,
        ThreadSource::Other(name) => wire::SessionSource::Custom(name.clone()),
    }
}

pub(super) fn approval(policy: &ApprovalPolicy) -> wire::AskForApproval {
    match policy {
        ApprovalPolicy::Untrusted => wire::AskForApproval::Untrusted,
        ApprovalPolicy::OnRequest => wire::AskForApproval::OnRequest,
        ApprovalPolicy::Never => wire::AskForApproval::Never,
        ApprovalPolicy::Granular(value) => serde_json::from_value(value.clone()).map_or(
            wire::AskForApproval::Untrusted,
            wire::AskForApproval::Granular,
        ),
    }
}

pub(super) fn reviewer(reviewer: Reviewer) -> wire::ApprovalsReviewer {
    match reviewer {
        Reviewer::User => wire::ApprovalsReviewer::User,
        Reviewer::Agent => wire::ApprovalsReviewer::AutoReview,
    }
}

pub(super) fn sandbox(sandbox: &Sandbox) -> wire::SandboxPolicy {
    match sandbox {
        Sandbox::FullAccess => wire::SandboxPolicy::DangerFullAccess,
        Sandbox::ReadOnly { network, .. } => {
            wire::SandboxPolicy::ReadOnly(wire::ReadOnlySandboxPolicy {
                network_access: *network,
            })
        }
        Sandbox::WorkspaceWrite {
            roots,
            network,
            without_tmp,
            without_tmpdir,
            ..
        } => wire::SandboxPolicy::WorkspaceWrite(wire::WorkspaceWriteSandboxPolicy {
            exclude_slash_tmp: *without_tmp,
            exclude_tmpdir_env_var: *without_tmpdir,
            network_access: *network,
            writable_roots: roots.clone(),
        }),
        Sandbox::External { network } => {
            wire::SandboxPolicy::ExternalSandbox(wire::ExternalSandboxSandboxPolicy {
                network_access: if *network {
                    wire::NetworkAccess::Enabled
                } else {
                    wire::NetworkAccess::Restricted
                },
            })
        }
    }
}
