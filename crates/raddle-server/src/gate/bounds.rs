//! Rejects members that would bound the agent or a command, but that the method's params type does
//! not have. Serde would ignore them silently, and the client would believe that the bound applies.

use std::collections::HashMap;

use raddle_config::{letters, may_bound};
use serde_json::value::RawValue;

use crate::wire_error::{WireError, quoted};

/// Methods, members that bound something in other methods, and the member to use instead. An empty
/// replacement marks a member of an older contract.
const REPLACED_MEMBERS: &[(&str, &str, &str)] = &[
    ("command/exec", "permissions", "permissionProfile"),
    ("command/exec", "sandbox", "sandboxPolicy"),
    ("process/spawn", "permissionProfile", NO_SANDBOX),
    ("process/spawn", "permissions", NO_SANDBOX),
    ("process/spawn", "sandboxPolicy", NO_SANDBOX),
    ("thread/fork", "permissionProfile", ""),
    ("thread/fork", "sandboxPolicy", "sandbox"),
    ("thread/resume", "permissionProfile", ""),
    ("thread/resume", "sandboxPolicy", "sandbox"),
    ("thread/settings/update", "permissionProfile", ""),
    ("thread/settings/update", "sandbox", "sandboxPolicy"),
    ("thread/shellCommand", "permissionProfile", NO_SANDBOX),
    ("thread/shellCommand", "sandboxPolicy", NO_SANDBOX),
    ("thread/start", "permissionProfile", ""),
    ("thread/start", "sandboxPolicy", "sandbox"),
    ("turn/start", "permissionProfile", ""),
    ("turn/start", "sandbox", "sandboxPolicy"),
];

/// Methods, and those of their members that bound something. Any other member whose name begins
/// like a bounding one is rejected, in any naming style.
const BOUND_MEMBERS: &[(&str, &[&str])] = &[
    (
        "command/exec",
        &[
            "outputBytesCap",
            "permissionProfile",
            "sandboxPolicy",
            "timeoutMs",
        ],
    ),
    ("process/spawn", &["outputBytesCap", "timeoutMs"]),
    ("review/start", &[]),
    ("thread/fork", OPEN_MEMBERS),
    ("thread/goal/set", &["tokenBudget"]),
    ("thread/resume", OPEN_MEMBERS),
    (
        "thread/settings/update",
        &[
            "approvalPolicy",
            "approvalsReviewer",
            "budget",
            "permissions",
            "sandboxPolicy",
        ],
    ),
    ("thread/shellCommand", &["timeoutMs"]),
    ("thread/start", OPEN_MEMBERS),
    (
        "turn/start",
        &[
            "approvalPolicy",
            "approvalsReviewer",
            "permissions",
            "sandboxPolicy",
        ],
    ),
    ("turn/settings/update", &["approvalsReviewer"]),
    ("turn/steer", &[]),
];

const OPEN_MEMBERS: &[&str] = &[
    "approvalPolicy",
    "approvalsReviewer",
    "permissions",
    "sandbox",
    "config",
];

/// The method that changes a thread's bounds.
const SETTINGS: &str = "thread/settings/update";

/// Replacement of members in methods without a sandbox.
const NO_SANDBOX: &str = "command/exec";

/// Members that a policy may have, whatever its type. A type that ignores one is as narrow without
/// it.
const POLICY_MEMBERS: &[&str] = &[
    "type",
    "networkAccess",
    "writableRoots",
    "excludeSlashTmp",
    "excludeTmpdirEnvVar",
];

/// Members of older policies that limit what commands may read.
const READ_ACCESS_MEMBERS: &[&str] = &["access", "readOnlyAccess"];

const GRANULAR_MEMBERS: &[&str] = &[
    "sandbox_approval",
    "rules",
    "mcp_elicitations",
    "request_permissions",
    "skill_approval",
];

const BUDGET_SCOPES: &[&str] = &["turn", "thread"];

const BUDGET_LIMITS: &[&str] = &["tokens", "usd", "seconds", "toolCalls"];

type ObjectMembers<'a> = HashMap<String, &'a RawValue>;

/// Rejects params with a member that would have no effect.
pub(super) fn check(method: &'static str, text: &str) -> Result<(), WireError> {
    let Some((_, bound_members)) = BOUND_MEMBERS.iter().find(|it| it.0 == method) else {
        return Ok(());
    };
    // Params of another shape are rejected where they are parsed.
    let Some(members) = members(text) else {
        return Ok(());
    };
    let replaced = REPLACED_MEMBERS
        .iter()
        .find(|it| it.0 == method && members.contains_key(it.1));
    match replaced {
        None => {}
        Some((_, _, "")) => return Err(WireError::Obsolete { method }),
        Some((_, member, NO_SANDBOX)) => {
            let what = format!("{method} has no sandbox, and so no `{member}`; use {NO_SANDBOX}");
            return Err(WireError::Refused(what.into()));
        }
        Some((_, member, replacement)) => {
            let what = format!("{method} has no `{member}`; use `{replacement}`");
            return Err(WireError::Refused(what.into()));
        }
    }
    let unknown = members.keys().map(String::as_str).find(|it| {
        let is_config = *it == "config" && !bound_members.contains(it);
        (may_bound(it) && !bound_members.contains(it)) || is_config
    });
    if let Some(member) = unknown {
        return Err(WireError::Refused(
            unread_bound(method, member, bound_members).into(),
        ));
    }
    if let Some(policy) = members.get("sandboxPolicy") {
        check_policy(policy.get())?;
    }
    if let Some(budget) = members.get("budget") {
        check_budget(budget.get())?;
    }
    let granular = members
        .get("approvalPolicy")
        .and_then(|it| self::members(it.get()));
    let granular = granular.and_then(|it| self::members(it.get("granular")?.get()));
    reject_unknown(
        "approvalPolicy.granular",
        &granular.unwrap_or_default(),
        GRANULAR_MEMBERS,
    )
}

/// Rejects a limit that the server does not count. Setting a scope replaces all its limits, so an
/// unknown limit would also remove those that are set.
fn check_budget(text: &str) -> Result<(), WireError> {
    let scopes = members(text).unwrap_or_default();
    reject_unknown("budget", &scopes, BUDGET_SCOPES)?;
    for scope in BUDGET_SCOPES {
        let limits = scopes.get(*scope).and_then(|it| members(it.get()));
        reject_unknown(
            &format!("budget.{scope}"),
            &limits.unwrap_or_default(),
            BUDGET_LIMITS,
        )?;
    }
    Ok(())
}

/// Rejects members that an object does not have.
fn reject_unknown(
    location: &str,
    members: &ObjectMembers<'_>,
    known: &[&str],
) -> Result<(), WireError> {
    let mut names = members.keys().map(String::as_str);
    match names.find(|it| !known.contains(it)) {
        Some(name) => Err(WireError::Refused(
            format!(
                "{location} has no `{}`; it has {}",
                quoted(name),
                known.join(", ")
            )
            .into(),
        )),
        None => Ok(()),
    }
}

/// Says that a method has no such member, and what bounds a thread instead.
fn unread_bound(method: &str, member: &str, bound_members: &[&str]) -> String {
    let same_letters = bound_members
        .iter()
        .find(|it| letters(it) == letters(member));
    let advice = match (same_letters, letters(member).as_str()) {
        (Some(same_letters), _) => format!("write `{same_letters}`"),
        (None, it) if it.starts_with("budget") && bound_members.contains(&"config") => {
            "write it in `config`, as `budget.turn.tool_calls`".to_owned()
        }
        (None, it) if it.starts_with("budget") => format!("use `budget` of {SETTINGS}"),
        (None, _) if bound_members.is_empty() => "leave it out".to_owned(),
        (None, _) => format!("the bounds here are {}", bound_members.join(", ")),
    };
    format!("{method} has no `{}`; {advice}", quoted(member))
}

fn check_policy(text: &str) -> Result<(), WireError> {
    let members = members(text).unwrap_or_default();
    let is_open = |value: &RawValue| {
        let kind = self::members(value.get()).and_then(|it| Some(it.get("type")?.get().to_owned()));
        kind.as_deref() == Some("\"fullAccess\"")
    };
    let unknown = members.iter().find(|(name, value)| {
        let name = name.as_str();
        let is_open_read_access = READ_ACCESS_MEMBERS.contains(&name) && is_open(value);
        !POLICY_MEMBERS.contains(&name) && !is_open_read_access
    });
    match unknown {
        Some((name, _)) => Err(WireError::Refused(
            format!(
                "sandboxPolicy has no `{}` that is enforced here; leave it out. It has {}",
                quoted(name),
                POLICY_MEMBERS.join(", ")
            )
            .into(),
        )),
        None => Ok(()),
    }
}

/// Returns the members of an object that are not null.
fn members(text: &str) -> Option<ObjectMembers<'_>> {
    let mut members: ObjectMembers<'_> = serde_json::from_str(text).ok()?;
    members.retain(|_, value| value.get() != "null");
    Some(members)
}
