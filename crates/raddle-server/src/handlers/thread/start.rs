//! `thread/start`: begin a conversation. The caller hears of it from its first record on.

use std::sync::Arc;

use raddle_agent::{AgentError, SubscribeResult};
use raddle_core::ThreadStarted;
use raddle_core::ports::BoxFuture;
use raddle_protocol::methods::ThreadStart;
use raddle_protocol::{ThreadHistoryMode, ThreadId, ThreadStartResponse};

use crate::call::{Call, Reply};
use crate::services::threads::{self, view};
use crate::services::{ServerState, permissions};
use crate::session::Session;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadStart>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let keyed = reply.idempotency();
        if let Some(id) = keyed.filter(|it| it.thread_exists).map(|it| it.thread) {
            return come_again(&rooms, session, reply, id).await;
        }
        let config = match rooms.config_now().await {
            Ok(config) => config,
            Err(error) => return reply.error(error),
        };
        let settings = match threads::settings(&params, &config) {
            Ok(settings) => threads::folders::resolved_settings(&rooms, settings).await,
            Err(error) => Err(error),
        };
        let settings = match settings {
            Ok(settings) => settings,
            Err(error) => return reply.error(error),
        };
        let profile = settings.profile.as_ref();
        let profile = profile.filter(|_| params.permissions.is_some());
        if let Err(error) = permissions::allowed(&rooms, profile, &settings.sandbox).await {
            return reply.error(error);
        }
        let id = keyed.map_or_else(ThreadId::mint, |it| it.thread);
        let started = ThreadStarted {
            thread: id,
            tenant: None,
            principal: threads::principal(&session),
            source: rooms.options.source.clone(),
            originator: session.client().map(|client| client.name.clone()),
            label: params.thread_source.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ephemeral: params.ephemeral.unwrap_or_default(),
            paginated: params.history_mode == Some(ThreadHistoryMode::Paginated),
            git: None,
            settings,
        };
        let cwd = &started.settings.cwd;
        let sources = rooms.threads.instructions(cwd).await.sources;
        let ear = threads::subscriber(&session, id);
        let keyed = reply.take_idempotency();
        let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
            let head = subscribed.map(|subscribed| view::head(&subscribed.thread, sources));
            if head.is_err() {
                session.threads().remove(&id);
            }
            reply.finish(head.map_err(|error| threads::refused(id, error)));
        };
        rooms.threads.start_for(keyed, started, ear, answer);
    });
}

/// The thread was begun when the request came before. The caller hears of it as it is by now.
async fn come_again(
    rooms: &ServerState,
    session: Arc<Session>,
    reply: Reply<ThreadStartResponse>,
    id: ThreadId,
) {
    let is_new = !session.threads().contains(&id);
    let newcomer = threads::subscribe_request(&session, id);
    let all = rooms.threads.clone();
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        Box::pin(async move {
            let head = match subscribed {
                Ok(SubscribeResult { thread, .. }) => {
                    session.relay.forget(id);
                    let asked = all.instructions(&thread.settings().cwd).await;
                    Ok(view::head(&thread, asked.sources))
                }
                Err(error) => Err(threads::refused(id, error)),
            };
            let is_well = head.is_ok();
            if !is_well && is_new {
                session.threads().remove(&id);
            }
            reply.finish(head);
            is_well
        }) as BoxFuture<'static, bool>
    };
    rooms.threads.resume(id, newcomer, answer).await;
}
