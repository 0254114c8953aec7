//! Reads the hooks of one file, in the form of Codex.

use std::path::Path;
use std::time::Duration;

use raddle_core::ports::{HookEvent, HookLayer};
use serde_json::{Map, Value};

use super::matcher::Matcher;
use super::{Hook, HookFileError, HookSet, STATE_TABLE, fingerprint};
use crate::setting_error::quoted;

/// Deadline of a hook without one.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest deadline of a hook.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Limit: hooks of all files; beyond it, the others do not run, and `hooks/list` warns.
const HOOKS_MAX: usize = 100;

/// Events of Codex on which no hook runs here.
const OTHER_EVENTS: &[&str] = &[
    "PreModelRequest",
    "PostModelRequest",
    "SessionEnd",
    "SubagentStart",
    "SubagentStop",
    "Interrupt",
];

/// Adds the hooks of a file to the set, with a warning for each that is left out.
pub(super) fn read(file: &Path, layer: HookLayer, events: &Value, set: &mut HookSet) {
    let Some(events) = events.as_object() else {
        return set.errors.push(HookFileError {
            path: file.to_owned(),
            message: "`hooks` must be a table of events".to_owned(),
        });
    };
    let origin = format!(", in {}", file.display());
    for name in events.keys().filter(|it| *it != STATE_TABLE) {
        if HookEvent::ALL.iter().any(|it| it.name() == name) {
            continue;
        }
        let name = quoted(name);
        set.warnings.push(match OTHER_EVENTS.contains(&&*name) {
            true => format!("hooks on `{name}` do not run here{origin}"),
            false => {
                let known: Vec<&str> = HookEvent::ALL.iter().map(|it| it.name()).collect();
                let known = known.join(", ");
                format!("there is no event `{name}`; write one of {known}{origin}")
            }
        });
    }
    for event in HookEvent::ALL {
        let Some(groups) = events.get(event.name()) else {
            continue;
        };
        let Some(groups) = groups.as_array() else {
            let what = format!("`{}` must be a list{origin}", event.name());
            set.warnings.push(what);
            continue;
        };
        for (group_at, group) in groups.iter().enumerate() {
            let handlers = group.get("hooks").and_then(Value::as_array);
            for (at, handler) in handlers.into_iter().flatten().enumerate() {
                let position = format!("{}:{group_at}:{at}", event.key());
                let matcher = group.get("matcher");
                let definition = Definition {
                    file,
                    layer,
                    event,
                    matcher: matcher
                        .and_then(Value::as_str)
                        .filter(|_| event.has_matcher()),
                };
                let hook = definition.hook(format!("{}:{position}", file.display()), handler);
                match hook {
                    Ok(_) if set.hooks.len() >= HOOKS_MAX => {
                        let what = format!("more than {HOOKS_MAX} hooks; `{position}` is left out");
                        set.warnings.push(what + &origin);
                    }
                    Ok((hook, warning)) => {
                        set.hooks.push(hook);
                        let warning = warning.map(|it| format!("the hook `{position}`: {it}"));
                        set.warnings.extend(warning.map(|it| it + &origin));
                    }
                    Err(what) => {
                        let what = format!("the hook `{position}` does not run: {what}{origin}");
                        set.warnings.push(what);
                    }
                }
            }
        }
    }
}

/// The place of a hook in its file.
struct Definition<'a> {
    file: &'a Path,
    layer: HookLayer,
    event: HookEvent,
    matcher: Option<&'a str>,
}

impl Definition<'_> {
    /// Returns the hook and a warning about it, or the reason why it cannot run.
    fn hook(&self, key: String, handler: &Value) -> Result<(Hook, Option<&'static str>), String> {
        let empty = Map::new();
        let handler = handler.as_object().unwrap_or(&empty);
        let text = |key: &str| handler.get(key).and_then(Value::as_str);
        match text("type") {
            Some("command") => {}
            Some(kind @ ("prompt" | "agent" | "mcp_tool")) => {
                return Err(format!("hooks of the type `{kind}` are not supported"));
            }
            _ => return Err("its `type` must be `command`".to_owned()),
        }
        let command = text("command").filter(|it| !it.trim().is_empty());
        let command = command.ok_or("its `command` must be a command line")?;
        if let Some(program) = fingerprint::relative_program(command) {
            return Err(format!(
                "`{}` is relative to the folder of the thread, whose files are no hooks; write an \
                 absolute path",
                quoted(&program)
            ));
        }
        let seconds =
            match handler.get("timeout") {
                None => None,
                Some(it) => Some(it.as_f64().filter(|it| *it > 0.0).ok_or_else(|| {
                    "its `timeout` must be a number of seconds above 0".to_owned()
                })?),
            };
        let timeout = seconds.map(|it| Duration::try_from_secs_f64(it).unwrap_or(TIMEOUT_MAX));
        let selection = Matcher::parse(self.matcher.unwrap_or_default())
            .map_err(|error| format!("its `matcher` is no regular expression: {error}"))?;
        let mut hook = Hook {
            key,
            event: self.event,
            matcher: self.matcher.map(str::to_owned),
            command: command.to_owned(),
            // Whole seconds, as clients show them.
            timeout: timeout.map_or(TIMEOUT, |it| {
                Duration::from_secs(it.as_secs().max(1)).min(TIMEOUT_MAX)
            }),
            status_message: text("statusMessage").map(str::to_owned),
            layer: self.layer,
            source_path: self.file.to_owned(),
            display_order: 0,
            enabled: true,
            current_hash: String::new(),
            trusted_hash: None,
            selection,
        };
        hook.current_hash = fingerprint::of(&hook).map_err(|error| error.to_string())?;
        let is_async = handler.get("async") == Some(&Value::Bool(true));
        let warning = is_async.then_some("`async` has no effect; the thread waits for the hook");
        Ok((hook, warning))
    }
}
