//! `thread/start`: begin a conversation. The caller hears of it from its first record on.

use std::sync::Arc;

use raddle_core::{Source, ThreadStarted};
use raddle_protocol::methods::ThreadStart;
use raddle_protocol::{ThreadHistoryMode, ThreadId};

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::threads::{self, view};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let config = match rooms.config_now().await {
            Ok(config) => config,
            Err(error) => return reply.error(error),
        };
        let settings = match threads::settings(&params, &config) {
            Ok(settings) => settings,
            Err(error) => return reply.error(error),
        };
        let id = ThreadId::mint();
        let started = ThreadStarted {
            thread: id,
            tenant: None,
            principal: threads::principal(&session),
            source: Source::Editor,
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
        rooms.threads.start(started, ear, move |subscribed| {
            let head = subscribed.map(|subscribed| view::head(&subscribed.thread, sources));
            if head.is_err() {
                session.threads().remove(&id);
            }
            reply.finish(head.map_err(|error| threads::refused(id, error)));
        });
    });
}
