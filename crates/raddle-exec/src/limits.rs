//! Validates the sandbox and approval settings of the arguments: each is known, and none
//! contradict.

use raddle_config::Override;
use raddle_protocol::{AskForApproval, SandboxMode};
use serde_json::{Value, json};

use super::error::UsageError;
use super::options::Options;

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
