//! `thread/fork`: begin a thread with another's history. The caller hears of it from its first record on.

use std::future::ready;
use std::sync::Arc;

use raddle_agent::{AgentError, ForkPoint, ForkRequest, PeekResult, SubscribeResult, Threads};
use raddle_core::ports::BoxFuture;
use raddle_protocol::methods::ThreadFork;
use raddle_protocol::{ThreadForkParams, ThreadForkResponse, ThreadId};

use crate::call::Call;
use crate::services::threads::view::{self, OpenItemText};
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadFork>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let cut = match cut(&params) {
        Ok(cut) => cut,
        Err(what) => return reply.error(WireError::Refused(what.into())),
    };
    let rooms = rooms.clone();
    tokio::spawn(async move {
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
            Ok(change) => threads::routed(&rooms, params.thread_id, change).await,
            Err(error) => Err(error),
        };
        let change = match change {
            Ok(change) => change,
            Err(error) => return reply.error(error),
        };
        let from = params.thread_id;
        let keyed = reply.idempotency();
        let to = keyed.map_or_else(ThreadId::mint, |it| it.thread);
        let is_made = keyed.is_some_and(|it| it.thread_exists);
        let fork = ForkRequest {
            from,
            point: cut,
            to,
            change,
            ephemeral: params.ephemeral,
            principal: threads::principal(&session),
            idempotency: reply.take_idempotency(),
        };
        let is_new = !session.threads().contains(&to);
        let newcomer = threads::subscribe_request(&session, to);
        let all = rooms.threads.clone();
        let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
            let thread = match subscribed {
                Ok(subscribed) => subscribed.thread,
                Err(error) => {
                    if is_new {
                        session.threads().remove(&to);
                    }
                    reply.error(threads::refused(from, error));
                    return Box::pin(ready(false)) as BoxFuture<'static, bool>;
                }
            };
            session.relay.forget(to);
            let peek = PeekResult {
                thread,
                live: true,
                owned: true,
            };
            Box::pin(async move {
                let _room = room;
                let answer = shown(&all, &peek, params.exclude_turns).await;
                let is_well = answer.is_ok();
                reply.finish(answer.map_err(|error| threads::refused(to, error)));
                is_well
            })
        };
        if is_made {
            // When the request came before. The caller hears of the fork as it is by now.
            rooms.threads.resume(to, newcomer, answer).await;
        } else {
            rooms.threads.fork(fork, newcomer.subscriber, answer).await;
        }
    });
}

fn cut(params: &ThreadForkParams) -> Result<ForkPoint, &'static str> {
    if params.path.as_ref().is_some_and(|path| !path.is_empty()) {
        return Err("a thread is forked by its id here; leave out path");
    }
    if params.attach_to_source || params.experimental_prediction_mode {
        return Err("a fork stands on its own here; leave out attachToSource and prediction modes");
    }
    match (&params.last_turn_id, &params.before_turn_id) {
        (None, None) => Ok(ForkPoint::Now),
        (Some(turn), None) => Ok(ForkPoint::After(turn.clone())),
        (None, Some(turn)) => Ok(ForkPoint::Before(turn.clone())),
        (Some(_), Some(_)) => Err("say lastTurnId or beforeTurnId, not both"),
    }
}

async fn shown(
    all: &Threads,
    peek: &PeekResult,
    exclude_turns: bool,
) -> Result<ThreadForkResponse, AgentError> {
    let asked = all.instructions(&peek.thread.settings().cwd).await;
    let mut head = view::head(&peek.thread, asked.sources);
    if !exclude_turns {
        head.thread.turns = view::turns(all, peek, OpenItemText::WithoutText).await?;
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
    })
}
