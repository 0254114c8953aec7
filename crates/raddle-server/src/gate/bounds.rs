//! What a request says to bound the agent or a command, and no type of it takes in: it would be left out in silence,
//! and the client would believe to be bounded by it.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::services::config::effective::{letters, may_bound};
use crate::wire_error::{WireError, shown};

/// Requests, and members that bound something in others: what to say instead. With nothing to say it is a member that
/// the contract had.
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

/// Requests, and those of their members that bound something: another member whose name begins like one that bounds
/// is refused, whatever the style it is written in.
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
    ("turn/steer", &[]),
];

const OPEN_MEMBERS: &[&str] = &[
    "approvalPolicy",
    "approvalsReviewer",
    "permissions",
    "sandbox",
    "config",
];

/// Where else a thread is bounded.
const SETTINGS: &str = "thread/settings/update";

/// What has no sandbox.
const NO_SANDBOX: &str = "command/exec";

/// Members that a policy may have, whatever its type: where a type has no use for one it is as narrow without it.
const POLICY_MEMBERS: &[&str] = &[
    "type",
    "networkAccess",
    "writableRoots",
    "excludeSlashTmp",
    "excludeTmpdirEnvVar",
];

/// Members of older policies: how far they let commands read.
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

/// Refuses params with such a member.
pub(super) fn check(method: &'static str, text: &str) -> Result<(), WireError> {
    let Some((_, bounding)) = BOUND_MEMBERS.iter().find(|it| it.0 == method) else {
        return Ok(());
    };
    // What has another shape is refused where it is read.
    let Some(members) = members(text) else {
        return Ok(());
    };
    let elsewhere = REPLACED_MEMBERS
        .iter()
        .find(|it| it.0 == method && members.contains_key(it.1));
    match elsewhere {
        None => {}
        Some((_, _, "")) => return Err(WireError::Obsolete { method }),
        Some((_, member, NO_SANDBOX)) => {
            let what = format!("{method} has no sandbox, and so no `{member}`; use {NO_SANDBOX}");
            return Err(WireError::Refused(what.into()));
        }
        Some((_, member, instead)) => {
            let what = format!("{method} has no `{member}`; use `{instead}`");
            return Err(WireError::Refused(what.into()));
        }
    }
    let unread = members.keys().map(String::as_str).find(|it| {
        let is_config = *it == "config" && !bounding.contains(it);
        (may_bound(it) && !bounding.contains(it)) || is_config
    });
    if let Some(member) = unread {
        return Err(WireError::Refused(
            unread_bound(method, member, bounding).into(),
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
    only(
        "approvalPolicy.granular",
        &granular.unwrap_or_default(),
        GRANULAR_MEMBERS,
    )
}

/// Refuses a limit that nobody counts. What is said of a scope replaces all its limits, so it would also take away those
/// that are there.
fn check_budget(text: &str) -> Result<(), WireError> {
    let scopes = members(text).unwrap_or_default();
    only("budget", &scopes, BUDGET_SCOPES)?;
    for scope in BUDGET_SCOPES {
        let limits = scopes.get(*scope).and_then(|it| members(it.get()));
        only(
            &format!("budget.{scope}"),
            &limits.unwrap_or_default(),
            BUDGET_LIMITS,
        )?;
    }
    Ok(())
}

/// Refuses members that an object does not have.
fn only(place: &str, members: &ObjectMembers<'_>, known: &[&str]) -> Result<(), WireError> {
    let mut names = members.keys().map(String::as_str);
    match names.find(|it| !known.contains(it)) {
        Some(name) => Err(WireError::Refused(
            format!(
                "{place} has no `{}`; it has {}",
                shown(name),
                known.join(", ")
            )
            .into(),
        )),
        None => Ok(()),
    }
}

/// That a request has no such member, and what bounds a thread instead.
fn unread_bound(method: &str, member: &str, bounding: &[&str]) -> String {
    let same = bounding.iter().find(|it| letters(it) == letters(member));
    let instead = match (same, letters(member).as_str()) {
        (Some(same), _) => format!("write `{same}`"),
        (None, it) if it.starts_with("budget") && bounding.contains(&"config") => {
            "write it in `config`, as `budget.turn.tool_calls`".to_owned()
        }
        (None, it) if it.starts_with("budget") => format!("use `budget` of {SETTINGS}"),
        (None, _) if bounding.is_empty() => "leave it out".to_owned(),
        (None, _) => format!("what bounds here is {}", bounding.join(", ")),
    };
    format!("{method} has no `{}`; {instead}", shown(member))
}

fn check_policy(text: &str) -> Result<(), WireError> {
    let members = members(text).unwrap_or_default();
    let is_open = |value: &RawValue| {
        let kind = self::members(value.get()).and_then(|it| Some(it.get("type")?.get().to_owned()));
        kind.as_deref() == Some("\"fullAccess\"")
    };
    let unknown = members.iter().find(|(name, value)| {
        let name = name.as_str();
        let is_reading = READ_ACCESS_MEMBERS.contains(&name) && is_open(value);
        !POLICY_MEMBERS.contains(&name) && !is_reading
    });
    match unknown {
        Some((name, _)) => Err(WireError::Refused(
            format!(
                "sandboxPolicy has no `{}` that is kept here; leave it out. It has {}",
                shown(name),
                POLICY_MEMBERS.join(", ")
            )
            .into(),
        )),
        None => Ok(()),
    }
}

/// The members of an object that say something.
fn members(text: &str) -> Option<ObjectMembers<'_>> {
    let mut members: ObjectMembers<'_> = serde_json::from_str(text).ok()?;
    members.retain(|_, value| value.get() != "null");
    Some(members)
}
