//! Validates the sandbox and approval settings of the arguments: each is known, none contradict, and
//! a resumed thread has them.

use raddle_client::ThreadView;
use raddle_config::Override;
use raddle_protocol::{AskForApproval, Budget, BudgetLimits, SandboxMode, SandboxPolicy};
use serde_json::{Value, json};

use super::error::UsageError;
use super::options::Options;
use super::plan::Plan;

const APPROVAL: &str = "approval_policy";
const SANDBOX: &str = "sandbox_mode";
const REVIEWER: &str = "approvals_reviewer";
pub(crate) const PROFILE: &str = "default_permissions";
const BYPASS: &str = "--dangerously-bypass-approvals-and-sandbox";

/// A policy that the types of the stock SDK still have. A failure cannot be predicted, so it
/// becomes `on-request`, where the agent asks.
const ON_FAILURE: &str = "on-failure";

/// Returns the last value of a key.
pub(crate) fn last(settings: &[Override], key: &str) -> Option<Value> {
    let mut reversed = settings.iter().rev();
    reversed.find(|it| is_about(it, key)).map(Override::to_json)
}

fn is_about(setting: &Override, key: &str) -> bool {
    matches!(setting.path(), [one] if one == key)
}

/// Normalizes the settings, or rejects the first unknown value. An unknown limit must not be read
/// as another one.
pub(crate) fn normalize(settings: Vec<Override>) -> Result<Vec<Override>, UsageError> {
    let settings: Vec<Override> = settings.into_iter().map(renamed).collect();
    for setting in &settings {
        let value = setting.to_json();
        if is_about(setting, APPROVAL) {
            let read = serde_json::from_value(value.clone());
            if matches!(read, Err(_) | Ok(AskForApproval::Unrecognized(_))) {
                return Err(unknown(APPROVAL, &value, AskForApproval::KNOWN));
            }
        }
        if is_about(setting, SANDBOX)
            && !value
                .as_str()
                .is_some_and(|it| SandboxMode::KNOWN.contains(&it))
        {
            return Err(unknown(SANDBOX, &value, SandboxMode::KNOWN));
        }
    }
    Ok(settings)
}

fn renamed(setting: Override) -> Override {
    let is_old = is_about(&setting, APPROVAL) && setting.to_json() == json!(ON_FAILURE);
    let named = is_old.then(|| format!("{APPROVAL}=on-request").parse().ok());
    named.flatten().unwrap_or(setting)
}

fn unknown(key: &'static str, value: &Value, known: &[&'static str]) -> UsageError {
    // That one is a table.
    let known = known.iter().copied().filter(|it| *it != "granular");
    UsageError::UnknownValue {
        key,
        value: value.to_string(),
        known: known.collect(),
    }
}

/// Rejects contradicting arguments, such as those before and after `resume`.
pub(crate) fn agree(options: &Options, settings: &[Override]) -> Result<(), UsageError> {
    let is_other = |key: &str, same: &str| {
        let mut below = settings.iter().map(Override::path);
        let is_below = below.any(|it| it.len() > 1 && it[0] == key);
        is_below || last(settings, key).is_some_and(|it| it != json!(same))
    };
    let mode = options.sandbox.as_ref().map_or("", SandboxMode::as_str);
    let profile = match options.sandbox {
        Some(SandboxMode::ReadOnly) => ":read-only",
        Some(SandboxMode::WorkspaceWrite) => ":workspace",
        Some(SandboxMode::DangerFullAccess) => ":danger-full-access",
        Some(SandboxMode::Unrecognized(_)) | None => "",
    };
    let bypass = options.dangerously_bypass_approvals_and_sandbox;
    let pairs = [
        (bypass && options.sandbox.is_some(), BYPASS, "--sandbox"),
        (bypass && options.full_auto, BYPASS, "--full-auto"),
        (
            bypass && options.unattended.is_some(),
            BYPASS,
            "--unattended",
        ),
        (
            bypass && is_other(APPROVAL, "never"),
            BYPASS,
            "-c approval_policy",
        ),
        (
            bypass && is_other(SANDBOX, "danger-full-access"),
            BYPASS,
            "-c sandbox_mode",
        ),
        (
            bypass && is_other(PROFILE, ":danger-full-access"),
            BYPASS,
            "-c default_permissions",
        ),
        (
            bypass && is_other(REVIEWER, "user"),
            BYPASS,
            "-c approvals_reviewer",
        ),
        (
            bypass && narrows(settings),
            BYPASS,
            "-c settings of a sandbox",
        ),
        (
            options.full_auto && options.sandbox.is_some(),
            "--full-auto",
            "--sandbox",
        ),
        (
            options.full_auto && is_other(PROFILE, ":workspace"),
            "--full-auto",
            "-c default_permissions",
        ),
        (
            options.full_auto && is_other(SANDBOX, "workspace-write"),
            "--full-auto",
            "-c sandbox_mode",
        ),
        (
            options.sandbox.is_some() && is_other(PROFILE, profile),
            "--sandbox",
            "-c default_permissions",
        ),
        (
            options.sandbox.is_some() && is_other(SANDBOX, mode),
            "--sandbox",
            "-c sandbox_mode",
        ),
        (
            budgets_differ(options, settings),
            "--budget",
            "-c budget.turn",
        ),
    ];
    match pairs.iter().find(|(is_so, ..)| *is_so) {
        Some(&(_, one, other)) => Err(UsageError::Contradiction { one, other }),
        None => Ok(()),
    }
}

/// Whether a setting has another value for a limit than `--budget`.
fn budgets_differ(options: &Options, settings: &[Override]) -> bool {
    let mut bounds = options.budget.iter();
    bounds.any(|bound| {
        let mut same = settings.iter().filter(|it| it.path() == bound.path());
        same.any(|it| it.to_json() != bound.to_json())
    })
}

/// Whether a setting restricts the sandbox. Network access does not contradict having no sandbox.
fn narrows(settings: &[Override]) -> bool {
    let mut settings = settings.iter();
    settings.any(|it| {
        let path: Vec<&str> = it.path().iter().map(String::as_str).collect();
        match path[..] {
            ["sandbox_workspace_write", "network_access"] => it.to_json() != json!(true),
            ["sandbox_workspace_write" | "sandbox_network", ..] => true,
            _ => false,
        }
    })
}

/// Returns the first limit of the arguments that a resumed thread does not have.
pub(crate) fn first_unchanged(plan: &Plan, thread: &ThreadView) -> Option<&'static str> {
    let profile = plan.setting(PROFILE);
    let is_sandbox_changed = match (plan.sandbox(), &thread.sandbox) {
        (Some(mode), Some(policy)) => is_of_mode(policy, &mode),
        _ => true,
    };
    let is_profile_changed = match (plan.sandbox(), profile) {
        (None, Some(profile)) => {
            let active = thread.active_permission_profile.as_ref();
            active.is_some_and(|it| profile == json!(it.id))
        }
        // A sandbox is a member of the request, and the profile agrees with it.
        _ => true,
    };
    let unchanged = [
        (is_sandbox_changed, "the sandbox"),
        (is_profile_changed, "the permission profile"),
        (
            has_budgets(thread.budget.as_ref(), &plan.settings),
            "the budget",
        ),
    ];
    let first = unchanged.into_iter().find(|(is_changed, _)| !is_changed);
    first.map(|(_, limit)| limit)
}

fn is_of_mode(policy: &SandboxPolicy, mode: &SandboxMode) -> bool {
    match policy {
        SandboxPolicy::ReadOnly(_) => *mode == SandboxMode::ReadOnly,
        SandboxPolicy::WorkspaceWrite(_) => *mode == SandboxMode::WorkspaceWrite,
        SandboxPolicy::DangerFullAccess => *mode == SandboxMode::DangerFullAccess,
        _ => false,
    }
}

/// Whether a thread has the budgets of the settings.
fn has_budgets(budget: Option<&Budget>, settings: &[Override]) -> bool {
    let limits = |it: Option<&BudgetLimits>| {
        let it = it.cloned().unwrap_or_default();
        json!({
            "tokens": it.tokens, "usd": it.usd, "seconds": it.seconds, "tool_calls": it.tool_calls,
        })
    };
    let turn = limits(budget.and_then(|it| it.turn.as_ref()));
    let thread = limits(budget.and_then(|it| it.thread.as_ref()));
    let in_effect = json!({ "budget": { "turn": turn, "thread": thread } });
    let mut requested = json!({});
    for setting in settings {
        if setting.path().first().is_some_and(|it| it == "budget") {
            insert(&mut requested, setting.path(), setting.to_json());
        }
    }
    includes(&in_effect, &requested)
}

/// Sets the value at a path. The last value of a path wins.
fn insert(table: &mut Value, path: &[String], value: Value) {
    let [key, rest @ ..] = path else {
        *table = value;
        return;
    };
    if !table.is_object() {
        *table = json!({});
    }
    insert(&mut table[key], rest, value);
}

/// Whether a table has all values of another one.
fn includes(all: &Value, some: &Value) -> bool {
    /// Amounts of money are stored in billionths of a dollar.
    const ROUNDING: f64 = 1e-9;
    if let Value::Object(members) = some {
        return members
            .iter()
            .all(|(key, value)| includes(&all[key], value));
    }
    match (all.as_f64(), some.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= ROUNDING,
        _ => all == some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_in_effect_include_the_requested_ones() {
        let limits = |tokens, usd| BudgetLimits {
            tokens,
            usd,
            ..BudgetLimits::default()
        };
        let budget = Budget {
            turn: Some(limits(Some(80), Some(0.1))),
            thread: None,
        };
        for (settings, expected) in [
            (&[][..], true),
            (&["budget.turn.tokens=80"], true),
            (&["budget.turn.tokens=90"], false),
            (&["budget.turn.tokens=90", "budget.turn.tokens=80"], true),
            (&["budget.turn.usd=0.1"], true),
            (&["budget.turn.tool_calls=1"], false),
            (&["budget.turn={ tokens = 80, usd = 0.1 }"], true),
            (&["budget.thread.tokens=80"], false),
            (&["budget={ thread = { tokens = 80 } }"], false),
            (&["model=x"], true),
        ] {
            let parsed = settings.iter().map(|it| it.parse().expect("a setting"));
            let parsed: Vec<Override> = parsed.collect();
            assert_eq!(
                has_budgets(Some(&budget), &parsed),
                expected,
                "{settings:?}"
            );
        }
    }
}
