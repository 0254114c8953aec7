//! The settings that `thread/resume` and `thread/fork` may override.

use std::collections::BTreeMap;

use raddle_config::permissions::{self, SandboxChoice};
use raddle_config::{EffectiveConfig, State, budget, command_variables};
use raddle_core::{Scope, SettingsChange};
use raddle_protocol as wire;
use serde_json::Value;

use super::{RequestedEnvironment, RequestedSandbox};
use crate::services::{ServerState, profiles, sandbox_policy};
use crate::wire_error::WireError;

/// The settings that both requests may set.
pub(crate) struct Overrides<'a> {
    model: &'a Option<String>,
    provider: &'a Option<String>,
    cwd: &'a Option<String>,
    roots: &'a Option<Vec<String>>,
    approval: &'a Option<wire::AskForApproval>,
    reviewer: &'a Option<wire::ApprovalsReviewer>,
    sandbox: &'a Option<wire::SandboxMode>,
    permissions: &'a Option<String>,
    config: &'a Option<BTreeMap<String, Value>>,
    tier: &'a wire::Maybe<String>,
    personality: Option<&'a wire::Personality>,
    base_instructions: &'a Option<String>,
    developer_instructions: &'a Option<String>,
}

impl<'a> From<&'a wire::ThreadResumeParams> for Overrides<'a> {
    fn from(params: &'a wire::ThreadResumeParams) -> Self {
        Self {
            model: &params.model,
            provider: &params.model_provider,
            cwd: &params.cwd,
            roots: &params.runtime_workspace_roots,
            approval: &params.approval_policy,
            reviewer: &params.approvals_reviewer,
            sandbox: &params.sandbox,
            permissions: &params.permissions,
            config: &params.config,
            tier: &params.service_tier,
            personality: params.personality.as_ref(),
            base_instructions: &params.base_instructions,
            developer_instructions: &params.developer_instructions,
        }
    }
}

impl<'a> From<&'a wire::ThreadForkParams> for Overrides<'a> {
    fn from(params: &'a wire::ThreadForkParams) -> Self {
        Self {
            model: &params.model,
            provider: &params.model_provider,
            cwd: &params.cwd,
            roots: &params.runtime_workspace_roots,
            approval: &params.approval_policy,
            reviewer: &params.approvals_reviewer,
            sandbox: &params.sandbox,
            permissions: &params.permissions,
            config: &params.config,
            tier: &params.service_tier,
            personality: None,
            base_instructions: &params.base_instructions,
            developer_instructions: &params.developer_instructions,
        }
    }
}

impl Overrides<'_> {
    /// Returns the change. Settings that the request does not set stay as they are.
    pub(crate) async fn change(
        self,
        state: &ServerState,
        config: &State,
    ) -> Result<SettingsChange, WireError> {
        let config = config.with_request(self.config.as_ref());
        config.bounds(true)?;
        let budget = |scope| budget::limits_of_request(self.config.as_ref(), &config, scope);
        let choice = self.choice(&config)?;
        let sandbox = choice.as_ref().map(sandbox_policy::of_choice).transpose()?;
        let profile = choice.map(|it| it.profile);
        if let (Some(profile), Some(sandbox)) = (&profile, &sandbox) {
            profiles::allowed(state, profile.as_ref(), sandbox).await?;
        }
        let environment = RequestedEnvironment::of(None, None, self.roots.as_deref())?;
        let as_change = |text: &Option<String>| text.clone().map(Some);
        Ok(SettingsChange {
            model: as_change(self.model),
            provider: as_change(self.provider),
            cwd: self.cwd.as_deref().map(super::absolute_folder),
            roots: environment.roots,
            approval: super::requested_approval(self.approval.as_ref(), &config)?,
            reviewer: super::requested_reviewer(self.reviewer.as_ref(), &config)?,
            sandbox,
            profile,
            tier: match self.tier {
                // Clients send null for members that they do not set.
                wire::Maybe::Absent | wire::Maybe::Null => None,
                wire::Maybe::Value(tier) => Some(Some(tier.clone())),
            },
            personality: self.personality.map(|it| Some(it.as_str().to_owned())),
            base_instructions: as_change(self.base_instructions),
            developer_instructions: as_change(self.developer_instructions),
            turn_budget: budget(Scope::Turn)?,
            thread_budget: budget(Scope::Thread)?,
            variables: command_variables::variables_of_request(&config)?,
            ..SettingsChange::default()
        })
    }

    /// Returns the sandbox that the request names, or its own configuration.
    fn choice(&self, config: &EffectiveConfig<'_>) -> Result<Option<SandboxChoice>, WireError> {
        let limits = RequestedSandbox {
            sandbox: self.sandbox.as_ref(),
            permissions: self.permissions.as_deref(),
        };
        if let Some(choice) = limits.choice(config)? {
            return Ok(Some(choice));
        }
        if config.names("sandbox_mode") || config.names("default_permissions") {
            return Ok(Some(permissions::of_config(config, None)?));
        }
        // The configured mode may be wider than the thread's own.
        if config.names("sandbox_workspace_write") {
            let what = "`sandbox_workspace_write` in `config` says how far a mode goes; name the mode too, with \
                        `sandbox` or `sandbox_mode`";
            return Err(WireError::Refused(what.into()));
        }
        Ok(None)
    }
}
