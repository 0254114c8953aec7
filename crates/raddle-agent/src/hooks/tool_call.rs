//! Hooks around a tool call. They run after the policy, and only make its ruling stricter.

use raddle_core::ports::{HookEvent, HookOutcome, HookRuling, ToolResult};
use raddle_core::{CommandSource, HookPrompt, ItemBody, ItemStatus, Settings, ToolCall};
use serde_json::{Map, Value};

use super::HookRunner;

/// Name of commands for hooks, as in Codex.
const COMMAND_TOOL: &str = "Bash";

/// Names of changes of files for hooks, beside that of the tool.
const PATCH_TOOLS: [&str; 3] = ["apply_patch", "Edit", "Write"];

/// Decision of the hooks before a tool.
pub(crate) struct PreToolDecision {
    pub(crate) ruling: HookRuling,
    /// The call with changed arguments, which the policy must judge.
    pub(crate) changed: Option<ToolCall>,
    /// Text for the model.
    pub(crate) prompt: Option<HookPrompt>,
}

impl HookRunner {
    /// Runs the hooks before a tool. `names` are those by which rules match the call.
    pub(crate) async fn before_tool(
        &self,
        settings: &Settings,
        (call, body): (&ToolCall, &ItemBody),
        names: Vec<String>,
    ) -> PreToolDecision {
        let tool = HookTool::of(call, body);
        let (subjects, input) = (tool.subjects(names), tool.input(call));
        let outcome = self
            .run(HookEvent::PreToolUse, subjects, settings, input)
            .await;
        let HookOutcome {
            mut ruling,
            updated_input,
            context,
            ..
        } = outcome;
        let changed = updated_input.map(|it| tool.changed(call, it));
        if let Some(None) = changed {
            let why = "A hook changes the input of this call to something that is no input.";
            ruling = HookRuling::Deny(why.to_owned());
        }
        PreToolDecision {
            ruling,
            changed: changed.flatten(),
            prompt: (!context.is_empty()).then_some(HookPrompt { pieces: context }),
        }
    }

    /// Runs the hooks on a request for approval. They may reject the call.
    pub(crate) async fn approval_requested(
        &self,
        settings: &Settings,
        (call, body): (&ToolCall, &ItemBody),
        names: Vec<String>,
    ) -> HookRuling {
        let tool = HookTool::of(call, body);
        let (subjects, input) = (tool.subjects(names), tool.input(call));
        let event = HookEvent::PermissionRequest;
        match self.run(event, subjects, settings, input).await.ruling {
            // The user is asked anyway.
            HookRuling::Ask(_) => HookRuling::Pass,
            ruling => ruling,
        }
    }

    /// Runs the hooks after a tool, and adds their text to the output.
    pub(crate) async fn after_tool(
        &self,
        settings: &Settings,
        (call, body): (&ToolCall, &ItemBody),
        names: Vec<String>,
        result: &mut ToolResult,
    ) {
        if !matches!(result.status, ItemStatus::Completed | ItemStatus::Failed) {
            return;
        }
        let tool = HookTool::of(call, body);
        let (subjects, mut input) = (tool.subjects(names), tool.input(call));
        let response = result.output.text.as_str();
        input.insert("tool_response".to_owned(), response.into());
        let outcome = self
            .run(HookEvent::PostToolUse, subjects, settings, input)
            .await;
        let context = outcome.context.into_iter().map(|it| it.text);
        for text in reason(outcome.ruling).into_iter().chain(context) {
            let output = &mut result.output.text;
            output.push_str("\n\nA hook of the user adds: ");
            output.push_str(&text);
        }
    }
}

/// Returns the reason of an objection.
pub(super) fn reason(ruling: HookRuling) -> Option<String> {
    match ruling {
        HookRuling::Pass => None,
        HookRuling::Ask(reason) | HookRuling::Deny(reason) => Some(reason),
    }
}

/// A tool call as hooks see it.
struct HookTool {
    name: String,
    aliases: &'static [&'static str],
    arguments: Map<String, Value>,
    /// Member of the arguments that holds the command line.
    line: Option<&'static str>,
}

impl HookTool {
    fn of(call: &ToolCall, body: &ItemBody) -> Self {
        let mut arguments = match call.freeform {
            true => Map::from_iter([("command".to_owned(), call.arguments.as_str().into())]),
            false => match call.object() {
                Ok(Value::Object(members)) => members,
                _ => Map::new(),
            },
        };
        let is_command = matches!(body, ItemBody::Command(it) if it.source != CommandSource::Typed);
        let line = ["cmd", "command"]
            .into_iter()
            .find(|it| is_command && arguments.contains_key(*it));
        if let Some(member) = line {
            let text = match &arguments[member] {
                Value::Array(words) => {
                    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                    words.join(" ").into()
                }
                text => text.clone(),
            };
            arguments.insert("command".to_owned(), text);
        }
        Self {
            name: match line {
                Some(_) => COMMAND_TOOL.to_owned(),
                None => call.tool.clone(),
            },
            aliases: match body {
                ItemBody::Patch(_) => &PATCH_TOOLS,
                // Input of a running command, such as a shell.
                ItemBody::Command(it) if it.source == CommandSource::Typed => &[COMMAND_TOOL],
                _ => &[],
            },
            arguments,
            line,
        }
    }

    /// Returns the names that matchers are compared with.
    fn subjects(&self, names: Vec<String>) -> Vec<String> {
        let aliases = self.aliases.iter().map(|it| (*it).to_owned());
        let own = std::iter::once(self.name.clone());
        own.chain(names).chain(aliases).collect()
    }

    /// Returns the input of hooks about the call.
    fn input(&self, call: &ToolCall) -> Map<String, Value> {
        Map::from_iter([
            ("tool_name".to_owned(), self.name.as_str().into()),
            ("tool_input".to_owned(), self.arguments.clone().into()),
            ("tool_use_id".to_owned(), call.id.as_str().into()),
        ])
    }

    /// Returns the call with the members of `update` in its arguments; none if they do not fit.
    fn changed(&self, call: &ToolCall, update: Value) -> Option<ToolCall> {
        let Value::Object(update) = update else {
            return None;
        };
        if call.freeform {
            let text = update.get("command").and_then(Value::as_str)?;
            return Some(ToolCall {
                arguments: text.to_owned(),
                ..call.clone()
            });
        }
        let Ok(Value::Object(mut arguments)) = call.object() else {
            return None;
        };
        for (name, value) in update {
            let is_line = name == "command" && self.line.is_some();
            match self.line {
                // Words stay words, unless the hook changes the line.
                Some(_) if is_line && self.arguments.get("command") == Some(&value) => {}
                Some(member) if is_line => {
                    arguments.insert(member.to_owned(), value);
                }
                _ => {
                    arguments.insert(name, value);
                }
            }
        }
        Some(ToolCall {
            arguments: Value::Object(arguments).to_string(),
            ..call.clone()
        })
    }
}

#[cfg(test)]
mod tests;
