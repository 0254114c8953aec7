//! `raddle hooks`: the hooks of the configuration, and the user's trust in them.

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use raddle_config::{Hook, HookSet, HookTrust, Override};
use raddle_console::{Printer, sanitize};
use serde_json::{Value, json};

use crate::cli::{HooksCommand, HooksList, HooksTrust};
use crate::config;
use crate::home::Home;
use crate::log;

pub(crate) fn run(overrides: Vec<Override>, command: HooksCommand) -> Result<ExitCode> {
    let config = config::open(&Home::find()?, overrides)?;
    let set = config.hooks();
    match command {
        HooksCommand::List(args) => list(&set, &args),
        HooksCommand::Trust(args) => {
            let chosen = chosen(&set, &args)?;
            let file = config
                .trust_hooks(&chosen)
                .map_err(|error| anyhow!(error))?;
            for hook in &chosen {
                let line = format!("raddle: trusted `{}`: {}", hook.key, hook.command);
                log::print_line(&sanitize(&line));
            }
            let trusted = match chosen.len() {
                1 => "this hook".to_owned(),
                count => format!("these {count} hooks"),
            };
            log::print_line(&format!("raddle: wrote the trust in {trusted} to {file}"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the hooks to trust.
fn chosen<'a>(set: &'a HookSet, args: &HooksTrust) -> Result<Vec<&'a Hook>> {
    let is_users = |it: &&Hook| it.trust() != HookTrust::Managed;
    let users: Vec<&Hook> = set.hooks.iter().filter(is_users).collect();
    if args.all {
        if users.is_empty() {
            bail!("there are no hooks to trust; docs/hooks.md describes how to write one");
        }
        return Ok(users);
    }
    let find = |name: &String| {
        let is_named = |it: &&&Hook| it.key == *name || number(it) == *name;
        let hook = users.iter().find(is_named).copied();
        hook.ok_or_else(|| {
            anyhow!("there is no hook `{name}` of the user; `raddle hooks list` shows all hooks")
        })
    };
    args.hooks.iter().map(find).collect()
}

/// Returns the number of a hook in the list.
fn number(hook: &Hook) -> String {
    (hook.display_order + 1).to_string()
}

fn list(set: &HookSet, args: &HooksList) -> Result<ExitCode> {
    let mut printer = Printer::new();
    if args.json {
        let hooks: Vec<Value> = set.hooks.iter().map(hook_json).collect();
        let errors: Vec<String> = set.errors.iter().map(ToString::to_string).collect();
        let list = json!({ "hooks": hooks, "warnings": set.warnings, "errors": errors });
        printer.line(&list.to_string())?;
        printer.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    for hook in &set.hooks {
        let matcher = hook.matcher.as_deref().map(|it| format!(" ({it})"));
        let line = format!(
            "{}. {}{}, {}: {}",
            number(hook),
            hook.event.name(),
            matcher.unwrap_or_default(),
            state(hook),
            hook.command
        );
        printer.line(&sanitize(&line))?;
        printer.line(&sanitize(&format!("   {}", hook.key)))?;
    }
    printer.flush()?;
    let errors = set.errors.iter().map(ToString::to_string);
    for warning in set.warnings.iter().cloned().chain(errors) {
        log::print_line(&sanitize(&format!("raddle: warning: {warning}")));
    }
    if set.hooks.is_empty() {
        log::print_line("raddle: there are no hooks; docs/hooks.md describes how to write one");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a hook runs, for people.
fn state(hook: &Hook) -> &'static str {
    match (hook.enabled, hook.trust()) {
        (false, _) => "disabled",
        (true, HookTrust::Managed) => "runs, set by the administrator",
        (true, HookTrust::Trusted) => "runs",
        (true, HookTrust::Modified) => "does not run: changed since it was trusted",
        (true, HookTrust::Untrusted) => "does not run: not trusted",
    }
}

fn hook_json(hook: &Hook) -> Value {
    json!({
        "number": hook.display_order + 1,
        "key": hook.key,
        "event": hook.event.name(),
        "matcher": hook.matcher,
        "command": hook.command,
        "timeoutSec": hook.timeout.as_secs(),
        "enabled": hook.enabled,
        "runs": hook.may_run(),
        "trust": match hook.trust() {
            HookTrust::Managed => "managed",
            HookTrust::Trusted => "trusted",
            HookTrust::Modified => "modified",
            HookTrust::Untrusted => "untrusted",
        },
        "currentHash": hook.current_hash,
    })
}
