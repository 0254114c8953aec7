//! `thread/start`: start a thread. The caller receives its events from the first record on.

use std::sync::Arc;

use raddle_agent::{AgentError, SubscribeResult};
use raddle_core::ThreadStarted;
use raddle_core::ports::BoxFuture;
use raddle_protocol::methods::ThreadStart;
use raddle_protocol::{ThreadHistoryMode, ThreadId, ThreadStartResponse};

use crate::call::{Call, Reply};
use crate::services::threads::{self, view};
use crate::services::{ServerState, profiles};
use crate::session::Session;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadStart>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let identity = reply.idempotency();
    if let Some(id) = identity.filter(|it| it.thread_exists).map(|it| it.thread) {
        return answer_retry(&state, session, reply, id).await;
    }
    let config = match state.config_now().await {
        Ok(config) => config,
        Err(error) => return reply.error(error),
    };
    let settings = match threads::settings(&params, &config) {
        Ok(settings) => threads::folders::resolved_settings(&state, settings).await,
        Err(error) => Err(error),
    };
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => return reply.error(error),
    };
    let profile = settings.profile.as_ref();
    let profile = profile.filter(|_| params.permissions.is_some());
    if let Err(error) = profiles::allowed(&state, profile, &settings.sandbox).await {
        return reply.error(error);
    }
    let id = identity.map_or_else(ThreadId::mint, |it| it.thread);
    let mode = params.workspace.as_ref();
    let is_copied = threads::folders::is_copied(mode, params.ephemeral.unwrap_or_default());
    let copied = match is_copied {
        Ok(true) => {
            let copied = threads::folders::copied(&state, id, &settings, None).await;
            copied.map(|(change, copy)| (change.applied_to(&settings), copy.is_new))
        }
        Ok(false) => Ok((settings, false)),
        Err(error) => Err(error),
    };
    // Whether this request made a copy, which nobody has used yet.
    let (settings, has_new_copy) = match copied {
        Ok(copied) => copied,
        Err(error) => return reply.error(error),
    };
    let started = ThreadStarted {
        thread: id,
        tenant: None,
        principal: threads::principal(&session),
        source: state.options.source.clone(),
        originator: session.client().map(|client| client.name.clone()),
        label: params.thread_source.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ephemeral: params.ephemeral.unwrap_or_default(),
        // Every history has pages; a client may still ask for the older mode.
        paginated: params.history_mode != Some(ThreadHistoryMode::Legacy),
        git: None,
        settings,
    };
    let cwd = &started.settings.cwd;
    let sources = state.threads.instructions(cwd).await.sources;
    let subscriber = threads::subscriber(&session, id);
    let idempotency = reply.take_idempotency();
    let copies = state.copies.clone();
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        let head = subscribed.map(|subscribed| view::head(&subscribed.thread, sources));
        if head.is_err() {
            session.threads().remove(&id);
        }
        let is_abandoned = has_new_copy && head.is_err();
        let head = head.map_err(|error| threads::refused(id, error));
        if !is_abandoned {
            return reply.finish(head);
        }
        tokio::spawn(async move {
            // Before the response: a retry makes the copy again.
            threads::folders::abandon_copy(&*copies, id).await;
            reply.finish(head);
        });
    };
    state
        .threads
        .start_for(idempotency, started, subscriber, answer);
}

/// Answers a retry: the thread exists, and the caller subscribes to it in its present state.
async fn answer_retry(
    state: &ServerState,
    session: Arc<Session>,
    reply: Reply<ThreadStartResponse>,
    id: ThreadId,
) {
    let is_new = !session.threads().contains(&id);
    let subscribe_request = threads::subscribe_request(&session, id);
    let threads_handle = state.threads.clone();
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        Box::pin(async move {
            let head = match subscribed {
                Ok(SubscribeResult { thread, .. }) => {
                    session.relay.forget(id);
                    let instructions = threads_handle.instructions(&thread.settings().cwd).await;
                    Ok(view::head(&thread, instructions.sources))
                }
                Err(error) => Err(threads::refused(id, error)),
            };
            let is_ok = head.is_ok();
            if !is_ok && is_new {
                session.threads().remove(&id);
            }
            reply.finish(head);
            is_ok
        }) as BoxFuture<'static, bool>
    };
    state.threads.resume(id, subscribe_request, answer).await;
}
