//! Parses a rule file.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use raddle_config::budget;
use raddle_core::policy::{
    ApprovalKind, HostPattern, Layer, ManagedLimits, PathPattern, Policy, Rule, SandboxKind,
    Subject, UnattendedPolicy, Verdict,
};
use raddle_core::{Scope, SpendLimits};
use toml::{Table, Value};

/// The default timeout for the answer of a user.
const AFTER_SECONDS: i64 = 300;

/// The content of a rule file.
#[derive(Debug)]
pub(crate) struct ParsedRules {
    pub(crate) policy: Policy,
    /// Entries without effect.
    pub(crate) warnings: Vec<String>,
}

/// Keys of every file.
const KEYS: [&str; 5] = [
    "rule",
    "unattended",
    "unattended_after_seconds",
    "unattended_webhook",
    "unattended_webhook_token_env",
];

/// Keys of the operator's files.
const MANAGED_KEYS: [&str; 4] = [
    "allowed_approval_policies",
    "allowed_sandbox_modes",
    "budget",
    "network",
];

const RULE_KEYS: [&str; 8] = [
    "beyond", "command", "host", "read", "reason", "tool", "verdict", "write",
];

/// Parses a rule file. In a path, `~/` stands for the user's folder, if one is given.
pub(crate) fn parse(text: &str, layer: Layer, home: Option<&Path>) -> Result<ParsedRules> {
    let table: Table = text.parse()?;
    let mut warnings = Vec::new();
    for key in table.keys().map(String::as_str) {
        if MANAGED_KEYS.contains(&key) && layer == Layer::User {
            warnings.push(format!(
                "`{key}` is valid only in a managed file and is ignored"
            ));
        } else if !KEYS.contains(&key) && !MANAGED_KEYS.contains(&key) {
            warnings.push(format!("`{key}` is not a key of rules and is ignored"));
        }
    }
    let mut policy = Policy::default();
    let rules = match table.get("rule") {
        None => &[][..],
        Some(Value::Array(rules)) => rules,
        Some(_) => bail!("`rule` is no list; begin each rule with [[rule]]"),
    };
    for (at, value) in rules.iter().enumerate() {
        let number = at + 1;
        let table = value.as_table();
        let table =
            table.with_context(|| format!("rule {number} is no table; begin it with [[rule]]"))?;
        let odd = table.keys().filter(|it| !RULE_KEYS.contains(&it.as_str()));
        warnings.extend(
            odd.map(|it| format!("`{it}` of rule {number} is not a key of a rule and is ignored")),
        );
        let rule = rule(table, layer, home).with_context(|| format!("rule {number}"))?;
        policy.rules.push(rule);
    }
    let unattended = unattended(&table)?;
    match layer {
        Layer::User => policy.unattended = unattended,
        Layer::Managed => {
            policy.managed = ManagedLimits {
                approvals: kinds(&table, "allowed_approval_policies", &ApprovalKind::ALL)?,
                sandboxes: kinds(&table, "allowed_sandbox_modes", &SandboxKind::ALL)?,
                network_off: match table.get("network") {
                    None => false,
                    Some(Value::Boolean(on)) => !on,
                    Some(_) => bail!("`network` is neither true nor false"),
                },
                unattended,
                turn_budget: limits(&table, Scope::Turn)?,
                thread_budget: limits(&table, Scope::Thread)?,
            };
        }
    }
    Ok(ParsedRules { policy, warnings })
}

fn limits(table: &Table, scope: Scope) -> Result<SpendLimits> {
    budget::of_table(table, scope).map_err(anyhow::Error::msg)
}

fn rule(table: &Table, layer: Layer, home: Option<&Path>) -> Result<Rule> {
    let verdict = match text(table, "verdict")? {
        Some("allow") => Verdict::Allow,
        Some("ask") => Verdict::Ask,
        Some("deny") => Verdict::Deny,
        _ => bail!("it has no verdict; write verdict = \"allow\", \"ask\" or \"deny\""),
    };
    let path = |key| {
        let pattern = text(table, key)?;
        ensure!(
            layer == Layer::User || pattern.is_none_or(|it| !it.starts_with('~')),
            "`~` is another folder for each user; write \"/home/*/…\" or \"**/…\" in a managed file"
        );
        let pattern = pattern.map(|it| at_home(it, home));
        pattern
            .map(|it| PathPattern::parse(&it))
            .transpose()
            .map_err(anyhow::Error::from)
    };
    let host = text(table, "host")?.map(HostPattern::parse).transpose()?;
    let subjects = [
        command(table)?.map(Subject::Command),
        path("write")?.map(Subject::Write),
        path("read")?.map(Subject::Read),
        host.map(Subject::Host),
        text(table, "tool")?.map(|it| Subject::Tool(it.to_owned())),
    ];
    let mut subjects = subjects.into_iter().flatten();
    let (Some(subject), None) = (subjects.next(), subjects.next()) else {
        bail!("it has no subject, or several; write one of command, write, read, host and tool");
    };
    let beyond = match table.get("beyond") {
        None => false,
        Some(Value::Boolean(beyond)) => *beyond,
        Some(_) => bail!("`beyond` is neither true nor false"),
    };
    ensure!(
        !beyond || verdict == Verdict::Allow,
        "only a rule that allows can set `beyond`; remove it"
    );
    Ok(Rule {
        layer,
        subject,
        verdict,
        beyond,
        reason: text(table, "reason")?.map(str::to_owned),
    })
}

fn command(table: &Table) -> Result<Option<Vec<String>>> {
    let Some(value) = table.get("command") else {
        return Ok(None);
    };
    let words = value.as_array().and_then(|words| {
        let words = words.iter().map(|it| it.as_str().map(str::to_owned));
        words.collect::<Option<Vec<String>>>()
    });
    match words {
        Some(words) if !words.is_empty() && words.iter().all(|it| !it.is_empty()) => {
            Ok(Some(words))
        }
        _ => bail!("`command` is a list of words, like [\"git\", \"push\"]"),
    }
}

fn unattended(table: &Table) -> Result<Option<UnattendedPolicy>> {
    let after_ms = match table.get("unattended_after_seconds") {
        None => AFTER_SECONDS,
        Some(Value::Integer(seconds)) => *seconds,
        Some(_) => bail!("`unattended_after_seconds` is no whole number"),
    };
    let after_ms = u64::try_from(after_ms)
        .ok()
        .and_then(|it| it.checked_mul(1_000))
        .context("`unattended_after_seconds` is out of range; write a number of seconds")?;
    let url = text(table, "unattended_webhook")?;
    let token_env = text(table, "unattended_webhook_token_env")?;
    Ok(Some(match text(table, "unattended")? {
        None => return Ok(None),
        Some("deny") => UnattendedPolicy::Deny { after_ms },
        Some("allow") => UnattendedPolicy::Allow { after_ms },
        Some("park") => UnattendedPolicy::Park,
        Some("webhook") => {
            let url =
                url.context("`unattended = \"webhook\"` needs `unattended_webhook`, an address")?;
            ensure!(
                is_safe(url),
                "`unattended_webhook` is neither https nor http to this machine: {url}"
            );
            UnattendedPolicy::Webhook {
                after_ms,
                url: url.to_owned(),
                token_env: token_env.map(str::to_owned),
            }
        }
        Some(_) => bail!("`unattended` is none of \"deny\", \"allow\", \"park\" and \"webhook\""),
    }))
}

/// Whether the request cannot be read in transit.
fn is_safe(url: &str) -> bool {
    let host = |rest: &str| {
        let authority = rest
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default()
            .to_owned();
        // A user name before an `@` would hide the host.
        (!authority.is_empty() && !authority.contains('@')).then_some(authority)
    };
    if let Some(rest) = url.strip_prefix("https://") {
        return host(rest).is_some();
    }
    let Some(host) = url.strip_prefix("http://").and_then(host) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    ["localhost", "127.0.0.1", "::1"].contains(&name)
}

fn kinds<T: Copy>(table: &Table, key: &str, all: &[(T, &str)]) -> Result<Option<Vec<T>>> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let names: Vec<&str> = all.iter().map(|it| it.1).collect();
    let kind = |value: &Value| {
        let matching = all.iter().find(|it| value.as_str() == Some(it.1));
        matching.map(|it| it.0)
    };
    let parsed = value
        .as_array()
        .and_then(|it| it.iter().map(kind).collect());
    let parsed: Option<Vec<T>> = parsed;
    let parsed =
        parsed.with_context(|| format!("`{key}` is a list of some of: {}", names.join(", ")))?;
    Ok(Some(parsed))
}

fn text<'a>(table: &'a Table, key: &str) -> Result<Option<&'a str>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => bail!("`{key}` is no text; put it in quotes"),
    }
}

fn at_home(pattern: &str, home: Option<&Path>) -> String {
    match (pattern.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => pattern.to_owned(),
    }
}
