//! `thread/resume`: open a thread, or come back to it, and hear of it from here on.

use std::future::ready;
use std::sync::Arc;

use raddle_agent::{AgentError, PeekResult, SubscribeRequest, SubscribeResult, Threads};
use raddle_core::ports::{BoxFuture, PageQuery};
use raddle_core::{ChangeSettings, CursorStatus, Seq, SettingsChange, settings_view};
use raddle_protocol::methods::ThreadResume;
use raddle_protocol::{
    SortDirection, ThreadId, ThreadResumeInitialTurnsPageParams, ThreadResumeParams,
    ThreadResumeResponse, ThreadStartResponse, TurnItemsView, TurnsPage,
};

use crate::call::Call;
use crate::services::threads::end_cursors::ends;
use crate::services::threads::lists;
use crate::services::threads::view::{self, OpenItemText};
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadResume>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if params.history.is_some() || params.path.as_ref().is_some_and(|path| !path.is_empty()) {
        let what = "a thread is resumed by its id here; leave out history and path";
        return reply.error(WireError::Refused(what.into()));
    }
    let is_numbered = session.client().is_some_and(|it| it.wants_seq);
    if params.after_seq.is_some() && !is_numbered {
        let what = "afterSeq needs the extension raddle/seq; name it in capabilities.extensions of initialize";
        return reply.error(WireError::Refused(what.into()));
    }
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        // Before the thread waits for the answer: it must not wait for a client that does not read.
        let room = match threads::reserve_answer(&session).await {
            Ok(room) => room,
            Err(error) => return reply.error(error),
        };
        let change = match rooms.config_now().await {
            Ok(config) => {
                let overrides = threads::Overrides::from(&params);
                overrides.change(&rooms, &config).await
            }
            Err(error) => Err(error),
        };
        let change = match change {
            Ok(change) => threads::routed(&rooms, id, change).await,
            Err(error) => Err(error),
        };
        let change = match change {
            Ok(change) => change,
            Err(error) => return reply.error(error),
        };
        if session.is_observer() && would_begin(&rooms.threads, id).await {
            return reply.error(WireError::ObserverWouldBegin);
        }
        // Who only looks changes nothing.
        let change = match session.is_observer() {
            true => SettingsChange::default(),
            false => change,
        };
        let is_new = !session.threads().contains(&id);
        let newcomer = SubscribeRequest {
            subscriber: threads::subscriber(&session, id),
            change: ChangeSettings {
                change,
                principal: threads::principal(&session),
            },
            with_usage: !params.exclude_turns,
            seen: params.after_seq.map(Seq),
        };
        let all = rooms.threads.clone();
        let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
            let thread = match subscribed {
                Ok(SubscribeResult {
                    cursor: CursorStatus::Expired,
                    after,
                    ..
                }) => Err(WireError::CursorExpired { seen: after.0 }),
                Ok(subscribed) => Ok(subscribed.thread),
                Err(error) => Err(threads::refused(id, error)),
            };
            let thread = match thread {
                Ok(thread) => thread,
                Err(error) => {
                    if is_new {
                        session.threads().remove(&id);
                    }
                    reply.error(error);
                    return Box::pin(ready(false)) as BoxFuture<'static, bool>;
                }
            };
            session.relay.forget(id);
            let peek = PeekResult {
                thread,
                live: true,
                owned: true,
            };
            Box::pin(async move {
                let _room = room;
                let answer = shown(&all, &peek, &params).await;
                let is_well = answer.is_ok();
                reply.finish(answer.map_err(|error| threads::refused(id, error)));
                is_well
            })
        };
        rooms.threads.resume(id, newcomer, answer).await;
    });
}

/// Whether work begins once a thread is opened: a turn that its owner left, queued input, a goal.
async fn would_begin(all: &Threads, id: ThreadId) -> bool {
    match all.peek(id).await {
        // Its owner has taken the work up.
        Ok(peek) if peek.live || peek.owned => false,
        Ok(peek) => has_work(&peek),
        // Opening it meets the same error, and says which.
        Err(_) => false,
    }
}

/// Whether a thread has work that its next owner begins.
pub(crate) fn has_work(peek: &PeekResult) -> bool {
    peek.thread.turn().is_some() || !peek.thread.pending().is_empty()
}

async fn shown(
    all: &Threads,
    peek: &PeekResult,
    params: &ThreadResumeParams,
) -> Result<ThreadResumeResponse, AgentError> {
    let id = params.thread_id;
    let asked = all.instructions(&peek.thread.settings().cwd).await;
    let mut head: ThreadStartResponse = view::head(&peek.thread, asked.sources);
    let ends = ends(all, id, None).await?;
    // Who goes on from what it knows is told the rest.
    if !params.exclude_turns && params.after_seq.is_none() {
        head.thread.turns = view::turns(all, peek, OpenItemText::WithoutText).await?;
    }
    let initial_turns_page = match &params.initial_turns_page {
        Some(page) => Some(first_page(all, id, page).await?),
        None => None,
    };
    Ok(ThreadResumeResponse {
        approval_policy: head.approval_policy,
        approvals_reviewer: head.approvals_reviewer,
        cwd: head.cwd,
        model: head.model,
        model_provider: head.model_provider,
        sandbox: head.sandbox,
        thread: head.thread,
        active_permission_profile: head.active_permission_profile,
        collaboration_mode: Some(settings_view(peek.thread.settings()).collaboration_mode),
        disabled_plugin_ids: head.disabled_plugin_ids,
        initial_turns_page,
        instruction_sources: head.instruction_sources,
        items_backwards_cursor: ends.items,
        multi_agent_mode: head.multi_agent_mode,
        reasoning_effort: head.reasoning_effort,
        runtime_workspace_roots: head.runtime_workspace_roots,
        service_tier: head.service_tier,
        turns_backwards_cursor: ends.turns,
    })
}

/// The page of turns that the answer brings along.
async fn first_page(
    all: &Threads,
    id: ThreadId,
    page: &ThreadResumeInitialTurnsPageParams,
) -> Result<TurnsPage, AgentError> {
    let query = PageQuery {
        cursor: None,
        limit: lists::limit(page.limit),
        newest_first: page.sort_direction != Some(SortDirection::Asc),
    };
    let items = page.items_view.clone().unwrap_or(TurnItemsView::Summary);
    view::turns_page(all, id, query, &items).await
}
