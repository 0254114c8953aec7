//! What `thread/resume` and `thread/fork` may want otherwise than it is stored.

use std::collections::BTreeMap;

use raddle_core::{Scope, SettingsChange};
use raddle_protocol as wire;
use serde_json::Value;

use super::budget;
use crate::rooms::config::{State, approval};
use crate::wire_error::WireError;

/// The settings that both may name.
pub(crate) struct Overrides<'a> {
    model: &'a Option<String>,
    provider: &'a Option<String>,
    cwd: &'a Option<String>,
    roots: &'a Option<Vec<String>>,
    approval: &'a Option<wire::AskForApproval>,
    reviewer: &'a Option<wire::ApprovalsReviewer>,
    sandbox: &'a Option<wire::SandboxMode>,
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
            config: &params.config,
            tier: &params.service_tier,
            personality: None,
            base_instructions: &params.base_instructions,
            developer_instructions: &params.developer_instructions,
        }
    }
}

impl Overrides<'_> {
    /// What changes. What is not named stays as it is.
    pub(crate) fn change(self, config: &State) -> Result<SettingsChange, WireError> {
        let config = config.said(self.config.as_ref());
        let budget = |scope| budget::named(self.config.as_ref(), &config, scope);
        let sandbox = match self.sandbox {
            Some(mode) => Some(super::sandbox_of(Some(mode), &config)?),
            None => None,
        };
        // Whoever says when to ask is told if what was started with says it wrongly.
        if self.approval.is_some() || self.names("approval_policy") {
            approval::of_config(&config)?;
        }
        let named = |text: &Option<String>| text.clone().map(Some);
        Ok(SettingsChange {
            model: named(self.model),
            provider: named(self.provider),
            cwd: self.cwd.clone(),
            roots: self.roots.clone(),
            approval: self.approval.as_ref().map(super::approval),
            reviewer: self.reviewer.as_ref().map(super::reviewer),
            sandbox,
            tier: match self.tier {
                // Clients say null for what they do not name.
                wire::Maybe::Absent | wire::Maybe::Null => None,
                wire::Maybe::Value(tier) => Some(Some(tier.clone())),
            },
            personality: self.personality.map(|it| Some(it.as_str().to_owned())),
            base_instructions: named(self.base_instructions),
            developer_instructions: named(self.developer_instructions),
            turn_budget: budget(Scope::Turn)?,
            thread_budget: budget(Scope::Thread)?,
            ..SettingsChange::default()
        })
    }

    /// Whether the request's own `config` says something of a key.
    fn names(&self, key: &str) -> bool {
        let is_key = |it: &String| {
            let rest = it.strip_prefix(key);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('.'))
        };
        self.config.iter().flat_map(BTreeMap::keys).any(is_key)
    }
}
