//! Usage limits of the account at its vendor. They belong to accounts of one vendor and exist so
//! that its clients work unchanged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Result of `account/rateLimits/read`. The method takes no params. Every member of `rateLimits` is
/// null if the account has no limits, or if they are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAccountRateLimitsResponse {
    /// The limits in their older form, for one kind of usage.
    pub rate_limits: RateLimitSnapshot,
    /// Id of the account; null if unknown.
    pub account_id: Option<String>,
    /// Whether the account may use what its plan includes; null if unknown.
    pub ordinary_usage_allowed: Option<bool>,
    /// Credits that reset a limit; null if the account has none.
    pub rate_limit_reset_credits: Option<Value>,
    /// Advertisement of the vendor, in the vendor's own form; null if there is none.
    pub rate_limit_upsell: Option<Value>,
    /// The limits by the id of the metered usage; null if unknown.
    pub rate_limits_by_limit_id: Option<BTreeMap<String, RateLimitSnapshot>>,
}

/// Limits of one kind of usage. A null member is unknown, or does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitSnapshot {
    /// Prepaid credits of the account.
    pub credits: Option<CreditsSnapshot>,
    /// Limit on the spending of the user.
    pub individual_limit: Option<SpendControlLimitSnapshot>,
    /// Id of the metered usage.
    pub limit_id: Option<String>,
    /// Name of the metered usage, for people.
    pub limit_name: Option<String>,
    /// Model whose name and efforts describe this limit.
    pub normal_model_slug: Option<String>,
    /// Plan of the account.
    pub plan_type: Option<PlanType>,
    /// Usage in the shorter of the two windows.
    pub primary: Option<RateLimitWindow>,
    /// The limit that is reached.
    pub rate_limit_reached_type: Option<RateLimitReachedType>,
    /// Usage in the longer of the two windows.
    pub secondary: Option<RateLimitWindow>,
    /// Whether the limit on spending is reached.
    pub spend_control_reached: Option<bool>,
}

/// Usage within a window of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitWindow {
    /// Used part of the limit, in percent.
    pub used_percent: i32,
    /// End of the window, in seconds since the epoch; null if unknown.
    pub resets_at: Option<i64>,
    /// Length of the window in minutes; null if unknown.
    pub window_duration_mins: Option<i64>,
}

/// Prepaid credits of an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreditsSnapshot {
    /// Whether the account has credits.
    pub has_credits: bool,
    /// Whether the account may spend without limit.
    pub unlimited: bool,
    /// Remaining credits, as the vendor writes the amount; null if unknown.
    pub balance: Option<String>,
}

/// Limit on the spending of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpendControlLimitSnapshot {
    /// The limit, as the vendor writes the amount.
    pub limit: String,
    /// Remaining part of the limit, in percent.
    pub remaining_percent: i32,
    /// Time at which the limit starts anew, in seconds since the epoch.
    pub resets_at: i64,
    /// The spent amount, as the vendor writes it.
    pub used: String,
}

open_enum! {
    /// Limit that an account has reached.
    pub enum RateLimitReachedType {
        /// The limit of the plan.
        RateLimitReached = "rate_limit_reached",
        /// The credits of the workspace, for its owner.
        WorkspaceOwnerCreditsDepleted = "workspace_owner_credits_depleted",
        /// The credits of the workspace, for a member.
        WorkspaceMemberCreditsDepleted = "workspace_member_credits_depleted",
        /// The usage limit of the workspace, for its owner.
        WorkspaceOwnerUsageLimitReached = "workspace_owner_usage_limit_reached",
        /// The usage limit of the workspace, for a member.
        WorkspaceMemberUsageLimitReached = "workspace_member_usage_limit_reached",
    }
}
