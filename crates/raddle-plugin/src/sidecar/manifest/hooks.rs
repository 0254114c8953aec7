//! The hooks of a manifest: `[[contributions.hooks]]`.

use raddle_config::HookMatcher;
use raddle_core::ports::{HookCall, HookEvent};
use toml::Table;

use super::{KeyFault, is_reserved, name, warn_of};

/// Limit: hooks of one plugin; beyond it, the plugin is rejected.
const HOOKS_MAX: usize = 32;

/// Events after which something happens that a hook can block.
const BLOCKED_EVENTS: [HookEvent; 3] = [
    HookEvent::PreToolUse,
    HookEvent::PermissionRequest,
    HookEvent::UserPromptSubmit,
];

const KEY: &str = "contributions.hooks";

const EXAMPLE: &str = "[[contributions.hooks]]";

/// A method of a plugin that is called on an event of a thread.
#[derive(Clone, Debug)]
pub struct PluginHook {
    /// Event on which it is called.
    pub event: HookEvent,
    /// Selection of events, as written.
    pub matcher: String,
    /// The method.
    pub method: String,
    /// Whether a failure blocks what the hook decides on.
    pub blocks_on_failure: bool,
    selection: HookMatcher,
}

impl PartialEq for PluginHook {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.event, it.matcher.clone(), it.method.clone());
        parts(self) == parts(other) && self.blocks_on_failure == other.blocks_on_failure
    }
}

impl PluginHook {
    /// Whether it is called on this event.
    pub(crate) fn selects(&self, call: &HookCall) -> bool {
        self.event == call.event && self.selection.selects(&call.subjects)
    }
}

/// Takes the hooks out of the contributions.
pub(super) fn take(
    contributions: &mut Table,
    warnings: &mut Vec<String>,
) -> Result<Vec<PluginHook>, KeyFault> {
    let wrong = || KeyFault::wrong(KEY, "a list of tables", EXAMPLE);
    let values = match contributions.remove("hooks") {
        None => Vec::new(),
        Some(toml::Value::Array(values)) => values,
        Some(_) => return Err(wrong()),
    };
    if values.len() > HOOKS_MAX {
        let problem = format!("has more than {HOOKS_MAX} hooks");
        return Err(KeyFault::new(KEY, problem, "join some of them"));
    }
    let hooks = values.into_iter().map(|value| match value {
        toml::Value::Table(keys) => hook(keys, warnings).map_err(|fault| fault.inside(KEY)),
        _ => Err(wrong()),
    });
    hooks.collect()
}

fn hook(mut keys: Table, warnings: &mut Vec<String>) -> Result<PluginHook, KeyFault> {
    let event_name = name(&mut keys, "event", "\"PreToolUse\"")?;
    let event = HookEvent::ALL
        .into_iter()
        .find(|it| it.name() == event_name);
    let event = event.ok_or_else(|| {
        let known: Vec<&str> = HookEvent::ALL.iter().map(|it| it.name()).collect();
        let remedy = format!("write one of {}", known.join(", "));
        KeyFault::new("event", format!("is `{event_name}`"), remedy)
    })?;
    let method = name(&mut keys, "method", "\"hooks/check\"")?;
    if is_reserved(&method) {
        let remedy = "name one of the plugin's own methods";
        return Err(KeyFault::new("method", format!("is `{method}`"), remedy));
    }
    let blocks_on_failure = on_failure(&mut keys, event)?;
    let matcher = match keys.contains_key("matcher") {
        true => name(&mut keys, "matcher", "\"Bash\"")?,
        false => String::new(),
    };
    // Codex ignores the matchers of other events.
    let selected = if event.has_matcher() { &*matcher } else { "" };
    let selection = HookMatcher::parse(selected).map_err(|error| {
        let problem = format!("is no regular expression: {error}");
        KeyFault::new(
            "matcher",
            problem,
            "write names of tools with | between them",
        )
    })?;
    warn_of(&keys, "contributions.hooks.", warnings);
    Ok(PluginHook {
        event,
        matcher,
        method,
        blocks_on_failure,
        selection,
    })
}

/// Takes `on_failure`, and returns whether it blocks.
fn on_failure(keys: &mut Table, event: HookEvent) -> Result<bool, KeyFault> {
    let key = "on_failure";
    let (problem, remedy) = match keys.remove(key).as_ref().map(toml::Value::as_str) {
        None | Some(Some("ignore")) => return Ok(false),
        Some(Some("block")) if BLOCKED_EVENTS.contains(&event) => return Ok(true),
        Some(Some("block")) => {
            let problem = format!("cannot be `block` for the event {}", event.name());
            let names = BLOCKED_EVENTS.map(HookEvent::name).join(", ");
            (problem, format!("remove it, or choose one of {names}"))
        }
        Some(_) => (
            "must be `ignore` or `block`".to_owned(),
            "correct it".to_owned(),
        ),
    };
    Err(KeyFault::new(key, problem, remedy))
}
