//! A thread and its turns as the wire shows them.

use raddle_protocol as wire;

use super::failure;
use super::item;
use crate::{
    ApprovalPolicy, LastTurn, OpenTurn, Reviewer, Sandbox, Source, Status, Thread, TurnEnd,
};

/// A thread without its turns, as the wire shows it.
///
/// # Panics
///
/// When the thread was never started: there is nothing to show then, and nobody to show it to.
pub fn view(thread: &Thread) -> wire::Thread {
    let identity = thread.identity.as_ref().expect("the thread was started");
    let settings = &thread.settings;
    let git = identity.git.as_ref().map(|git| wire::GitInfo {
        branch: git.branch.clone(),
        origin_url: git.origin.clone(),
        sha: git.sha.clone(),
    });
    wire::Thread {
        id: identity.thread,
        session_id: identity.thread,
        cli_version: identity.version.clone(),
        created_at: identity.created_at.seconds(),
        cwd: settings.cwd.clone(),
        ephemeral: identity.ephemeral,
        model_provider: settings.provider.clone().unwrap_or_default(),
        preview: thread.preview.clone(),
        project_id: None,
        source: source(&identity.source),
        status: status(thread.status()),
        turns: Vec::new(),
        updated_at: thread.updated_at.seconds(),
        agent_nickname: None,
        agent_role: None,
        can_accept_direct_input: None,
        daybreak_enabled: None,
        environments: None,
        extra: None,
        forked_from_id: identity.forked_from,
        git_info: git,
        history_mode: if identity.paginated {
            wire::ThreadHistoryMode::Paginated
        } else {
            wire::ThreadHistoryMode::Legacy
        },
        model: settings.model.clone(),
        name: thread.name.clone(),
        originator: identity.originator.clone(),
        parent_thread_id: None,
        path: None,
        reasoning_effort: settings.effort.clone(),
        recency_at: thread.recency_at.map(|at| at.seconds()),
        section: None,
        section_entered_at: None,
        thread_source: identity.label.clone(),
    }
}

pub(super) fn status(status: Status) -> wire::ThreadStatus {
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

/// A turn that runs, without its items.
pub(super) fn open_turn(turn: &OpenTurn) -> wire::Turn {
    wire::Turn {
        id: turn.id.clone(),
        items: Vec::new(),
        status: wire::TurnStatus::InProgress,
        completed_at: None,
        duration_ms: None,
        error: None,
        items_view: wire::TurnItemsView::NotLoaded,
        root_turn_id: Some(turn.root.clone().unwrap_or_else(|| turn.id.clone())),
        started_at: Some(turn.started_at.seconds()),
    }
}

/// A turn that ended, with its last message if it ended well.
pub(super) fn last_turn(turn: &LastTurn) -> wire::Turn {
    let (status, error) = match &turn.end {
        TurnEnd::Completed {} => (wire::TurnStatus::Completed, None),
        TurnEnd::Interrupted(_) => (wire::TurnStatus::Interrupted, None),
        TurnEnd::Failed(why) => (wire::TurnStatus::Failed, Some(failure(why))),
    };
    let well = matches!(turn.end, TurnEnd::Completed {});
    let answer = turn.answer.as_deref().filter(|_| well);
    wire::Turn {
        id: turn.id.clone(),
        items: answer.map(item::whole).into_iter().collect(),
        status,
        completed_at: Some(turn.ended_at.seconds()),
        duration_ms: Some(turn.ended_at.since(turn.started_at)),
        error,
        items_view: wire::TurnItemsView::Summary,
        root_turn_id: Some(turn.root.clone().unwrap_or_else(|| turn.id.clone())),
        started_at: Some(turn.started_at.seconds()),
    }
}

fn source(source: &Source) -> wire::SessionSource {
    match source {
        Source::Cli => wire::SessionSource::Cli,
        Source::Editor => wire::SessionSource::Vscode,
        Source::Exec => wire::SessionSource::Exec,
        Source::AppServer => wire::SessionSource::AppServer,
        Source::Other(name) => wire::SessionSource::Custom(name.clone()),
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
        Sandbox::ReadOnly { network } => {
            wire::SandboxPolicy::ReadOnly(wire::ReadOnlySandboxPolicy {
                network_access: *network,
            })
        }
        Sandbox::WorkspaceWrite {
            roots,
            network,
            without_tmp,
            without_tmpdir,
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
