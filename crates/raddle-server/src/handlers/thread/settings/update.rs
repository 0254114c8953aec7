//! `thread/settings/update`: change how later turns run. Subscribers are notified if something
//! changed.

use std::sync::Arc;

use raddle_agent::client_tools;
use raddle_core::{ChangeSettings, Command, SettingsChange};
use raddle_protocol::methods::ThreadSettingsUpdate;
use raddle_protocol::{Budget, Maybe, ThreadSettingsUpdateParams, ThreadSettingsUpdateResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadSettingsUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if let Some(what) = params.budget.as_ref().and_then(negative_limit) {
        return reply.error(WireError::Refused(what.into()));
    }
    let tools = params.dynamic_tools.as_deref().map(client_tools);
    let client_tools = match tools.transpose() {
        Ok(tools) => tools,
        Err(error) => return reply.error(WireError::Refused(error.to_string().into())),
    };
    let id = params.thread_id;
    let change = match change(&state, &params).await {
        Ok(change) => {
            let change = SettingsChange {
                client_tools,
                ..change
            };
            threads::routed(&state, id, change).await
        }
        Err(error) => Err(error),
    };
    let change = match change {
        Ok(change) => change,
        Err(error) => return reply.error(error),
    };
    let change = Command::ChangeSettings(Box::new(ChangeSettings {
        change,
        principal: threads::principal(&session),
    }));
    let answer = reply.into_reply_to(move |done| {
        let changed = done.map(|_| ThreadSettingsUpdateResponse {});
        changed.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, change, answer).await;
}

/// Returns what is wrong with a budget: an amount of money must not be negative.
fn negative_limit(budget: &Budget) -> Option<String> {
    let scopes = [("turn", &budget.turn), ("thread", &budget.thread)];
    scopes.into_iter().find_map(|(scope, limits)| {
        let usd = limits.as_ref()?.usd.filter(|usd| *usd < 0.0)?;
        let requirement = "must be a number of dollars, not below 0";
        Some(format!("`budget.{scope}.usd` {requirement}, and is {usd}"))
    })
}

async fn change(
    state: &ServerState,
    params: &ThreadSettingsUpdateParams,
) -> Result<SettingsChange, WireError> {
    let policy = params.sandbox_policy.as_ref();
    let (sandbox, profile) =
        threads::requested_sandbox(state, params.permissions.as_deref(), policy).await?;
    // A mode brings settings of its own; explicit params override them.
    let mode = params.collaboration_mode.as_ref().map(|it| &it.settings);
    let model = params.model.clone().or_else(|| Some(mode?.model.clone()));
    let effort = params.effort.clone().map(Some);
    let effort = effort.or_else(|| Some(mode?.reasoning_effort.clone()));
    let summary = params.summary.as_ref();
    let personality = params.personality.as_ref();
    let budget = params.budget.as_ref();
    Ok(SettingsChange {
        model: model.map(Some),
        provider: params.model_provider.clone().map(Some),
        effort,
        summary: summary.map(|it| Some(it.as_str().to_owned())),
        cwd: params.cwd.clone(),
        approval: params
            .approval_policy
            .as_ref()
            .map(threads::approval)
            .transpose()?,
        reviewer: params
            .approvals_reviewer
            .as_ref()
            .map(threads::reviewer)
            .transpose()?,
        sandbox,
        profile,
        personality: personality.map(|it| Some(it.as_str().to_owned())),
        tier: match &params.service_tier {
            Maybe::Absent => None,
            Maybe::Null => Some(None),
            Maybe::Value(tier) => Some(Some(tier.clone())),
        },
        turn_budget: budget.and_then(|it| Some(it.turn.as_ref()?.into())),
        thread_budget: budget.and_then(|it| Some(it.thread.as_ref()?.into())),
        ..SettingsChange::default()
    })
}
