//! The decision of a hook, from its exit status and its output.

use raddle_core::ports::{HookEntry, HookEvent, HookRuling};
use serde_json::Value;

use super::process::HookExit;

/// Limit: text of one hook for the model or the user; beyond it, the rest is dropped.
const CONTEXT_BYTES_MAX: usize = 10_000;

/// Limit: input of a tool that one hook changes, as JSON; beyond it, the hook has failed.
const INPUT_BYTES_MAX: usize = 256 << 10;

/// Exit status with which a hook rejects; its stderr is the reason.
const REJECTED: i32 = 2;

/// Reason of a hook that gives none.
const NO_REASON: &str = "A hook gave no reason.";

/// Decision of one hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    pub(super) ruling: HookRuling,
    pub(super) updated_input: Option<Value>,
    /// Text for the model.
    pub(super) context: Option<String>,
    /// Output for clients.
    pub(super) entries: Vec<HookEntry>,
}

impl Decision {
    /// The decision of a hook that failed: none.
    pub(super) fn failed(error: String) -> Self {
        Self {
            entries: vec![HookEntry::Error(error)],
            ..Self::default()
        }
    }

    /// Denies what a hook that failed was to decide on.
    pub(super) fn blocking_if_failed(mut self, key: &str) -> Self {
        let mut errors = self.entries.iter().filter_map(|it| match it {
            HookEntry::Error(error) => Some(error),
            _ => None,
        });
        if let Some(error) = errors.next() {
            let reason = format!("The hook {key} failed, and blocks what it cannot check: {error}");
            self.ruling = HookRuling::Deny(reason);
        }
        self
    }

    pub(super) fn has_failed(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|it| matches!(it, HookEntry::Error(_)))
    }

    /// Reads the decision of a hook that has exited.
    pub(super) fn of(event: HookEvent, exit: &HookExit) -> Self {
        let stdout = String::from_utf8_lossy(&exit.stdout);
        let stderr = String::from_utf8_lossy(&exit.stderr);
        match exit.code {
            Some(0) => {}
            Some(REJECTED) => return Self::denied(shortened(stderr.trim())),
            Some(code) => {
                let stderr = shortened(stderr.trim());
                return Self::failed(format!("it exited with {code}: {stderr}"));
            }
            None => return Self::failed("it was killed".to_owned()),
        }
        if exit.is_truncated {
            return Self::failed("it printed too much".to_owned());
        }
        let text = stdout.trim();
        if !text.starts_with('{') {
            // Plain text is context where a hook has nothing else to decide.
            return match event {
                HookEvent::SessionStart | HookEvent::UserPromptSubmit if !text.is_empty() => {
                    Self::default().with_context(text)
                }
                _ => Self::default(),
            };
        }
        match serde_json::from_str(text) {
            Ok(answer) => Self::of_answer(event, &answer),
            Err(error) => Self::failed(format!("its output is no JSON: {error}")),
        }
    }

    /// Reads the result of a plugin's method: an object, or text for the model.
    pub(super) fn of_result(event: HookEvent, result: &Value) -> Self {
        match result {
            Value::Null => Self::default(),
            Value::Object(_) => Self::of_answer(event, result),
            Value::String(text) if text.trim().is_empty() => Self::default(),
            Value::String(text) => Self::default().with_context(text),
            _ => Self::failed("its result must be an object, a text or null".to_owned()),
        }
    }

    /// Reads the JSON object that a hook printed.
    fn of_answer(event: HookEvent, answer: &Value) -> Self {
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.filter(|it| !it.is_empty()).map(shortened)
        };
        let specific = &answer["hookSpecificOutput"];
        let reason = text(specific, "permissionDecisionReason").or_else(|| text(answer, "reason"));
        let mut decision = Self::default();
        if answer.get("continue") == Some(&Value::Bool(false)) {
            let reason = text(answer, "stopReason").or_else(|| reason.clone());
            decision = Self::denied(reason.unwrap_or_default());
        } else if answer["decision"] == "block" {
            decision = Self::denied(reason.clone().unwrap_or_default());
        } else if answer["decision"].is_string() && answer["decision"] != "approve" {
            return Self::failed("its `decision` must be `block` or `approve`".to_owned());
        }
        match event {
            HookEvent::PreToolUse => match specific.get("permissionDecision") {
                // The policy has decided; a hook only makes its ruling stricter.
                None | Some(Value::Null) => {}
                Some(it) if it == "allow" => {}
                Some(it) if it == "ask" => {
                    let reason = reason.unwrap_or_else(|| NO_REASON.to_owned());
                    decision.entries.push(HookEntry::Feedback(reason.clone()));
                    decision.ruling = decision.ruling.stricter(HookRuling::Ask(reason));
                }
                Some(it) if it == "deny" => decision = Self::denied(reason.unwrap_or_default()),
                Some(_) => {
                    let why = "its `permissionDecision` must be `allow`, `ask` or `deny`";
                    return Self::failed(why.to_owned());
                }
            },
            HookEvent::PermissionRequest => {
                let behavior = &specific["decision"]["behavior"];
                if behavior == "deny" {
                    let message = text(&specific["decision"], "message");
                    decision = Self::denied(message.or(reason).unwrap_or_default());
                }
            }
            _ => {}
        }
        if event == HookEvent::PreToolUse
            && let Some(input) = specific.get("updatedInput").filter(|it| !it.is_null())
        {
            if !input.is_object() {
                return Self::failed("its `updatedInput` must be an object".to_owned());
            }
            if input.to_string().len() > INPUT_BYTES_MAX {
                let why = format!("its `updatedInput` is longer than {INPUT_BYTES_MAX} bytes");
                return Self::failed(why);
            }
            decision.updated_input = Some(input.clone());
        }
        let message = text(answer, "systemMessage");
        decision.entries.extend(message.map(HookEntry::Warning));
        match text(specific, "additionalContext") {
            Some(context) => decision.with_context(&context),
            None => decision,
        }
    }

    fn denied(reason: String) -> Self {
        let reason = match reason.is_empty() {
            true => NO_REASON.to_owned(),
            false => reason,
        };
        Self {
            entries: vec![HookEntry::Feedback(reason.clone())],
            ruling: HookRuling::Deny(reason),
            ..Self::default()
        }
    }

    fn with_context(mut self, text: &str) -> Self {
        let text = shortened(text);
        self.entries.push(HookEntry::Context(text.clone()));
        self.context = Some(text);
        self
    }
}

/// Truncates the text of a hook.
fn shortened(text: &str) -> String {
    match text.len() <= CONTEXT_BYTES_MAX {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(CONTEXT_BYTES_MAX)]),
    }
}

#[cfg(test)]
mod tests;
