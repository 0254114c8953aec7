//! `thread/fork`: start a thread with another's history. The caller receives its events from the
//! first record on.

use std::future::ready;
use std::sync::Arc;

use raddle_agent::{AgentError, ForkPoint, ForkRequest, PeekResult, SubscribeResult, Threads};
use raddle_core::SettingsChange;
use raddle_core::ports::{BoxFuture, FileConflict, ForkedFiles};
use raddle_protocol::methods::ThreadFork;
use raddle_protocol::table::Resource;
use raddle_protocol::{ThreadForkParams, ThreadForkResponse, ThreadId};

use crate::call::Call;
use crate::services::checkpoints::wire;
use crate::services::threads::view::{self, OpenItemText};
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadFork>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let point = match fork_point(&params) {
        Ok(point) => point,
        Err(what) => return reply.error(WireError::Refused(what.into())),
    };
    let reservation = match threads::reserve_answer(&session).await {
        Ok(reservation) => reservation,
        Err(error) => return reply.error(error),
    };
    let change = match state.config_now().await {
        Ok(config) => {
            let overrides = threads::Overrides::from(&params);
            overrides.change(&state, &config).await
        }
        Err(error) => Err(error),
    };
    let change = match change {
        Ok(change) => threads::routed(&state, params.thread_id, change).await,
        Err(error) => Err(error),
    };
    let change = match change {
        Ok(change) => change,
        Err(error) => return reply.error(error),
    };
    let from = params.thread_id;
    let identity = reply.idempotency();
    let to = identity.map_or_else(ThreadId::mint, |it| it.thread);
    let already_exists = identity.is_some_and(|it| it.thread_exists);
    let is_copied = threads::folders::is_copied(params.workspace.as_ref(), params.ephemeral);
    if matches!(is_copied, Ok(true))
        && let Some(mut pass) = reply.take_pass()
    {
        // A copy may take long, and the source goes on meanwhile.
        pass.leave(&Resource::Thread(from));
        reply.hold(Some(pass));
    }
    let files = match is_copied {
        Err(error) => Err(error),
        Ok(_) if already_exists => Ok(FilesOfFork::of(point, change)),
        Ok(true) => copied(&state, from, to, point, change).await,
        Ok(false) => {
            let shared = shared(&state, from, to, params.ephemeral).await;
            shared.map(|()| FilesOfFork::of(point, change))
        }
    };
    let FilesOfFork {
        point,
        change,
        has_new_copy,
        conflicts,
    } = match files {
        Ok(files) => files,
        Err(error) => return reply.error(error),
    };
    let fork = ForkRequest {
        from,
        point,
        to,
        change,
        ephemeral: params.ephemeral,
        principal: threads::principal(&session),
        idempotency: reply.take_idempotency(),
    };
    let is_new = !session.threads().contains(&to);
    let subscribe_request = threads::subscribe_request(&session, to);
    let threads_handle = state.threads.clone();
    let copies = state.copies.clone();
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        let thread = match subscribed {
            Ok(subscribed) => subscribed.thread,
            Err(error) => {
                if is_new {
                    session.threads().remove(&to);
                }
                let error = threads::refused(from, error);
                if has_new_copy {
                    tokio::spawn(async move {
                        // Before the response: a retry makes the copy again.
                        threads::folders::abandon_copy(&*copies, to).await;
                        reply.error(error);
                    });
                } else {
                    reply.error(error);
                }
                return Box::pin(ready(false)) as BoxFuture<'static, bool>;
            }
        };
        session.relay.forget(to);
        let peek = PeekResult::loaded(thread);
        Box::pin(async move {
            let _reservation = reservation;
            let answer = response(&threads_handle, &peek, params.exclude_turns).await;
            let answer = answer.map(|it| ThreadForkResponse {
                workspace_conflicts: (!conflicts.is_empty())
                    .then(|| wire::file_conflicts(&conflicts)),
                ..it
            });
            let is_ok = answer.is_ok();
            reply.finish(answer.map_err(|error| threads::refused(to, error)));
            is_ok
        })
    };
    if already_exists {
        // A retry: the caller subscribes to the fork in its present state.
        state.threads.resume(to, subscribe_request, answer).await;
    } else {
        state
            .threads
            .fork(fork, subscribe_request.subscriber, answer)
            .await;
    }
}

/// The files with which a fork begins.
struct FilesOfFork {
    /// End of the history to which they belong.
    point: ForkPoint,
    /// Changes of settings in the fork.
    change: SettingsChange,
    /// Whether this request made a copy, which nobody has used yet.
    has_new_copy: bool,
    /// Files of the copy that are not as at the end of the history.
    conflicts: Vec<FileConflict>,
}

impl FilesOfFork {
    /// Returns the files of the source.
    fn of(point: ForkPoint, change: SettingsChange) -> Self {
        Self {
            point,
            change,
            has_new_copy: false,
            conflicts: Vec::new(),
        }
    }
}

/// Lets the fork work where its source does.
async fn shared(
    state: &ServerState,
    from: ThreadId,
    to: ThreadId,
    is_ephemeral: bool,
) -> Result<(), WireError> {
    if !is_ephemeral && let Ok(at) = threads::folder_of(state, from).await {
        // Before the fork exists: without this, a change of its `cwd` could lead it out of the copy.
        state.copies.fork(at, to).await?;
    }
    Ok(())
}

/// Makes a copy for the fork, in which the files are as at the end of its history.
async fn copied(
    state: &ServerState,
    from: ThreadId,
    to: ThreadId,
    point: ForkPoint,
    change: SettingsChange,
) -> Result<FilesOfFork, WireError> {
    let origin = state.threads.fork_origin(from, point).await;
    let origin = origin.map_err(|error| threads::refused(from, error))?;
    let checkpoint = match origin.later {
        Some(turn) => checkpoints::checkpoint_before(state, from, &turn).await?,
        None => None,
    };
    let fork = ForkedFiles {
        from: threads::folders::folder_in(from, &origin.settings_now),
        checkpoint,
    };
    let settings = change.clone().applied_to(&origin.settings);
    let (folders, copy) = threads::folders::copied(state, to, &settings, Some(fork)).await?;
    Ok(FilesOfFork {
        point: origin.point,
        change: SettingsChange {
            cwd: folders.cwd,
            roots: folders.roots,
            real_paths: folders.real_paths,
            sandbox: folders.sandbox,
            profile: folders.profile,
            ..change
        },
        has_new_copy: copy.is_new,
        conflicts: copy.conflicts,
    })
}

fn fork_point(params: &ThreadForkParams) -> Result<ForkPoint, &'static str> {
    if params.path.as_ref().is_some_and(|path| !path.is_empty()) {
        return Err("a thread is forked by its id here; leave out path");
    }
    if params.attach_to_source || params.experimental_prediction_mode {
        return Err(
            "attached forks are not supported; leave out attachToSource and prediction modes",
        );
    }
    match (&params.last_turn_id, &params.before_turn_id) {
        (None, None) => Ok(ForkPoint::Now),
        (Some(turn), None) => Ok(ForkPoint::After(turn.clone())),
        (None, Some(turn)) => Ok(ForkPoint::Before(turn.clone())),
        (Some(_), Some(_)) => Err("pass lastTurnId or beforeTurnId, not both"),
    }
}

async fn response(
    threads: &Threads,
    peek: &PeekResult,
    exclude_turns: bool,
) -> Result<ThreadForkResponse, AgentError> {
    let instructions = threads.instructions(&peek.thread.settings().cwd).await;
    let mut head = view::head(&peek.thread, instructions.sources);
    if !exclude_turns {
        head.thread.turns = view::turns(threads, peek, OpenItemText::WithoutText).await?;
    }
    Ok(ThreadForkResponse {
        approval_policy: head.approval_policy,
        approvals_reviewer: head.approvals_reviewer,
        cwd: head.cwd,
        model: head.model,
        model_provider: head.model_provider,
        sandbox: head.sandbox,
        thread: head.thread,
        active_permission_profile: head.active_permission_profile,
        disabled_plugin_ids: head.disabled_plugin_ids,
        instruction_sources: head.instruction_sources,
        multi_agent_mode: head.multi_agent_mode,
        reasoning_effort: head.reasoning_effort,
        runtime_workspace_roots: head.runtime_workspace_roots,
        service_tier: head.service_tier,
        workspace_conflicts: None,
    })
}
