//! `thread/resume`: open a thread, or return to it, and subscribe to its events.

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

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadResume>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if params.history.is_some() || params.path.as_ref().is_some_and(|path| !path.is_empty()) {
        let what = "a thread is resumed by its id here; leave out history and path";
        return reply.error(WireError::Refused(what.into()));
    }
    let wants_seq = session.client().is_some_and(|it| it.wants_seq);
    if params.after_seq.is_some() && !wants_seq {
        let what = "afterSeq needs the extension raddle/seq; name it in capabilities.extensions of initialize";
        return reply.error(WireError::Refused(what.into()));
    }
    let id = params.thread_id;
    // Before the thread waits for the response: it must not wait for a client that does not read.
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
        Ok(change) => threads::routed(&state, id, change).await,
        Err(error) => Err(error),
    };
    let change = match change {
        Ok(change) => change,
        Err(error) => return reply.error(error),
    };
    if session.is_observer() && would_begin(&state.threads, id).await {
        return reply.error(WireError::ObserverWouldBegin);
    }
    // An observer changes no settings.
    let change = match session.is_observer() {
        true => SettingsChange::default(),
        false => change,
    };
    let is_new = !session.threads().contains(&id);
    let subscribe_request = SubscribeRequest {
        subscriber: threads::subscriber(&session, id),
        change: ChangeSettings {
            change,
            principal: threads::principal(&session),
        },
        with_usage: !params.exclude_turns,
        cursor: params.after_seq.map(Seq),
    };
    let threads_handle = state.threads.clone();
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        let thread = match subscribed {
            Ok(SubscribeResult {
                cursor: CursorStatus::Expired,
                after,
                ..
            }) => Err(WireError::CursorExpired { seq: after.0 }),
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
        let peek = PeekResult::loaded(thread);
        Box::pin(async move {
            let _reservation = reservation;
            let answer = response(&threads_handle, &peek, &params).await;
            let is_ok = answer.is_ok();
            reply.finish(answer.map_err(|error| threads::refused(id, error)));
            is_ok
        })
    };
    state.threads.resume(id, subscribe_request, answer).await;
}

/// Whether opening a thread starts work: a turn that its owner left, queued input, a goal.
async fn would_begin(threads: &Threads, id: ThreadId) -> bool {
    match threads.peek(id).await {
        // Its owner has resumed the work.
        Ok(peek) if peek.is_owned() => false,
        Ok(peek) => threads::has_work(&peek),
        // Opening the thread fails with the same error, which the client receives.
        Err(_) => false,
    }
}

async fn response(
    threads: &Threads,
    peek: &PeekResult,
    params: &ThreadResumeParams,
) -> Result<ThreadResumeResponse, AgentError> {
    let id = params.thread_id;
    let instructions = threads.instructions(&peek.thread.settings().cwd).await;
    let mut head: ThreadStartResponse = view::head(&peek.thread, instructions.sources);
    let settings = settings_view(peek.thread.settings());
    let ends = ends(threads, id, None).await?;
    // A client that resumes after a sequence number receives the rest as events.
    if !params.exclude_turns && params.after_seq.is_none() {
        head.thread.turns = view::turns(threads, peek, OpenItemText::WithoutText).await?;
    }
    let initial_turns_page = match &params.initial_turns_page {
        Some(page) => Some(first_page(threads, id, page).await?),
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
        budget: settings.budget,
        collaboration_mode: Some(settings.collaboration_mode),
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

/// Returns the page of turns that the response includes.
async fn first_page(
    threads: &Threads,
    id: ThreadId,
    page: &ThreadResumeInitialTurnsPageParams,
) -> Result<TurnsPage, AgentError> {
    let query = PageQuery {
        cursor: None,
        limit: lists::limit(page.limit),
        newest_first: page.sort_direction != Some(SortDirection::Asc),
    };
    let items = page.items_view.clone().unwrap_or(TurnItemsView::Summary);
    view::turns_page(threads, id, query, &items).await
}
