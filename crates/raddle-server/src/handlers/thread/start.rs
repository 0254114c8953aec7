//! `thread/start`: begin a conversation. The caller hears of it from its first record on.

use std::sync::Arc;

use raddle_core::{Source, Thread, ThreadStarted, settings_view, view};
use raddle_protocol::methods::ThreadStart;
use raddle_protocol::{ThreadHistoryMode, ThreadId, ThreadStartResponse};

use crate::call::Call;
use crate::rooms::{Rooms, threads};

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
            settings: threads::settings(&params, &config),
        };
        let cwd = &started.settings.cwd;
        let sources = rooms.threads.instructions(cwd).await.sources;
        let ear = threads::subscriber(&session, id);
        rooms.threads.start(started, ear, move |subscribed| {
            let thread = subscribed.map_err(|error| threads::refused(id, error));
            reply.finish(thread.map(|subscribed| begun(&subscribed.thread, sources)));
        });
    });
}

fn begun(thread: &Thread, sources: Vec<String>) -> ThreadStartResponse {
    let settings = settings_view(thread.settings());
    ThreadStartResponse {
        approval_policy: settings.approval_policy,
        approvals_reviewer: settings.approvals_reviewer,
        cwd: settings.cwd,
        model: settings.model,
        model_provider: settings.model_provider,
        sandbox: settings.sandbox_policy,
        thread: view(thread),
        active_permission_profile: None,
        disabled_plugin_ids: settings.disabled_plugin_ids,
        instruction_sources: sources,
        multi_agent_mode: settings.multi_agent_mode,
        reasoning_effort: settings.effort,
        runtime_workspace_roots: thread.settings().roots.clone(),
        service_tier: settings.service_tier,
    }
}
