//! The arguments of a call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::tool_list::{APPROVAL_POLICIES, CONTINUE, SANDBOX_MODES, START};
use super::{NewThread, ThreadTarget, TurnRequest};

/// Reason why a call cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error(
        "there is no tool `{tool}`; the tools are {start} and {reply}",
        start = START, reply = CONTINUE
    )]
    UnknownTool { tool: String },
    #[error("invalid arguments of {tool}: {source}")]
    Invalid {
        tool: &'static str,
        source: serde_json::Error,
    },
    #[error("`{name}` cannot be {value:?}; use {}", .known.join(", "))]
    UnknownValue {
        name: &'static str,
        value: String,
        known: &'static [&'static str],
    },
    #[error("`prompt` is empty; describe the task for the agent")]
    EmptyPrompt,
    #[error("`threadId` is missing; give the one of an earlier result")]
    NoThread,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StartArguments {
    prompt: String,
    model: Option<String>,
    cwd: Option<PathBuf>,
    approval_policy: Option<String>,
    sandbox: Option<String>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    config: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReplyArguments {
    prompt: String,
    thread_id: Option<String>,
    conversation_id: Option<String>,
}

/// Reads the arguments of the tool with this name.
pub(crate) fn read(
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<TurnRequest, ArgumentError> {
    let request = match tool {
        START => start(parse(START, arguments)?)?,
        CONTINUE => reply(parse(CONTINUE, arguments)?)?,
        other => {
            let tool = other.to_owned();
            return Err(ArgumentError::UnknownTool { tool });
        }
    };
    match request.prompt.trim().is_empty() {
        true => Err(ArgumentError::EmptyPrompt),
        false => Ok(request),
    }
}

fn parse<T: DeserializeOwned>(
    tool: &'static str,
    arguments: Map<String, Value>,
) -> Result<T, ArgumentError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|source| ArgumentError::Invalid { tool, source })
}

fn start(arguments: StartArguments) -> Result<TurnRequest, ArgumentError> {
    let policy = arguments.approval_policy;
    let approval_policy = known("approval-policy", policy, &APPROVAL_POLICIES)?;
    let sandbox = known("sandbox", arguments.sandbox, &SANDBOX_MODES)?;
    let thread = NewThread {
        model: arguments.model,
        cwd: arguments.cwd,
        // The server cannot predict failures, so the agent decides when to ask.
        approval_policy: approval_policy.map(|it| it.replace("on-failure", "on-request")),
        sandbox,
        base_instructions: arguments.base_instructions,
        developer_instructions: arguments.developer_instructions,
        config: arguments.config,
    };
    Ok(TurnRequest {
        thread: ThreadTarget::New(Box::new(thread)),
        prompt: arguments.prompt,
    })
}

fn reply(arguments: ReplyArguments) -> Result<TurnRequest, ArgumentError> {
    let thread = arguments.thread_id.or(arguments.conversation_id);
    Ok(TurnRequest {
        thread: ThreadTarget::Existing(thread.ok_or(ArgumentError::NoThread)?),
        prompt: arguments.prompt,
    })
}

/// Rejects a value that is not in the list.
fn known(
    name: &'static str,
    value: Option<String>,
    known: &'static [&'static str],
) -> Result<Option<String>, ArgumentError> {
    match value {
        Some(value) if !known.contains(&value.as_str()) => {
            Err(ArgumentError::UnknownValue { name, value, known })
        }
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(tool: &str, arguments: Value) -> Result<TurnRequest, String> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        read(tool, arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_of_codex_are_read() {
        let request = read_json(
            "codex",
            json!({
                "prompt": "weave", "cwd": "loom", "approval-policy": "on-failure",
                "sandbox": "read-only", "config": { "model_reasoning_effort": "low" },
            }),
        );
        let thread = NewThread {
            cwd: Some("loom".into()),
            approval_policy: Some("on-request".to_owned()),
            sandbox: Some("read-only".to_owned()),
            config: Some([("model_reasoning_effort".to_owned(), json!("low"))].into()),
            ..NewThread::default()
        };
        let expected = TurnRequest {
            thread: ThreadTarget::New(Box::new(thread)),
            prompt: "weave".to_owned(),
        };
        assert_eq!(request, Ok(expected));
    }

    #[test]
    fn a_thread_has_two_names() {
        for name in ["threadId", "conversationId"] {
            let request = read_json("codex-reply", json!({ "prompt": "on", name: "7" }));
            let thread = request.expect("a request").thread;
            assert_eq!(thread, ThreadTarget::Existing("7".to_owned()));
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (tool, arguments, expected) in [
            ("other", json!({}), "there is no tool `other`"),
            ("codex", json!({}), "missing field `prompt`"),
            ("codex", json!({ "prompt": " " }), "`prompt` is empty"),
            ("codex", json!({ "prompt": 1 }), "invalid type"),
            (
                "codex",
                json!({ "prompt": "x", "sand-box": "read-only" }),
                "unknown field `sand-box`, expected one of `prompt`, `model`",
            ),
            (
                "codex",
                json!({ "prompt": "x", "sandbox": "none" }),
                "`sandbox` cannot be \"none\"; use read-only, workspace-write",
            ),
            (
                "codex-reply",
                json!({ "prompt": "x" }),
                "`threadId` is missing",
            ),
        ] {
            let error = read_json(tool, arguments).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
