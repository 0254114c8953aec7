//! Tools that clients offer and run: their specifications for the model, and the meaning of calls.

use std::collections::HashSet;
use std::sync::Arc;

use raddle_core::ports::ToolSpec;
use raddle_core::{Admission, ClientTool, GoalStatus, ItemBody, NamedTool, ToolCall};
use raddle_protocol::{DynamicToolNamespaceTool, DynamicToolSpec};
use serde_json::{Value, json};

/// Maximum number of tools of a thread; vendors accept no more.
const TOOLS_MAX: usize = 128;

/// Limit: tools that a client offers to one thread, as JSON, with at most 128 tools; beyond it, the
/// server rejects the request with -32600.
///
/// The descriptions are part of every model call.
const BYTES_MAX: usize = 256 << 10;

/// Maximum length of a tool's name, including its namespace.
pub const NAME_BYTES_MAX: usize = 64;

/// Name of the tool with which the model reports the status of the goal.
const UPDATE_GOAL: &str = "update_goal";

/// Reason why tools are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// More tools than the limit.
    #[error("dynamicTools has {0} tools, and a thread takes at most {TOOLS_MAX}")]
    TooMany(usize),
    /// Descriptions longer than the limit.
    #[error("dynamicTools has {0} bytes, and a thread takes at most {BYTES_MAX}")]
    TooLong(usize),
    /// A name that vendors do not accept.
    #[error(
        "the tool name `{0}` cannot be used: with its namespace and two underscores between them it must be \
         1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`"
    )]
    BadName(String),
    /// Two tools with the same name.
    #[error("two tools are named `{0}`; give each a name of its own")]
    TwoOfOneName(String),
    /// A schema that is not an object.
    #[error("the inputSchema of the tool `{0}` must be an object")]
    BadSchema(String),
}

/// Validates the tools that a client offers, and returns the form in which a thread stores them.
pub fn client_tools(specs: &[DynamicToolSpec]) -> Result<Vec<Value>, ToolsError> {
    let stored = specs.iter().filter_map(|it| serde_json::to_value(it).ok());
    let stored: Vec<Value> = stored.collect();
    let bytes: usize = stored.iter().map(|it| it.to_string().len()).sum();
    if bytes > BYTES_MAX {
        return Err(ToolsError::TooLong(bytes));
    }
    let offered = OfferedTools::of(&stored);
    if offered.tools.len() > TOOLS_MAX {
        return Err(ToolsError::TooMany(offered.tools.len()));
    }
    let mut names = HashSet::new();
    for it in &offered.tools {
        let name = &it.spec.name;
        let has_all = !it.tool.is_empty() && it.namespace.as_deref() != Some("");
        if !has_all || !is_tool_name(name) {
            return Err(ToolsError::BadName(it.tool.clone()));
        }
        if !it.spec.schema.is_object() {
            return Err(ToolsError::BadSchema(name.clone()));
        }
        if !names.insert(name) {
            return Err(ToolsError::TwoOfOneName(name.clone()));
        }
    }
    Ok(stored)
}

/// Whether vendors accept the name of a tool: 1 to [`NAME_BYTES_MAX`] letters, digits, `_` or `-`.
pub fn is_tool_name(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_known)
}

/// The offered tools of a thread: the client's in their order, and then the tool for the goal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfferedTools {
    tools: Vec<ClientToolSpec>,
    /// Whether the model may report the status of the goal.
    goal: bool,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq)]
struct ClientToolSpec {
    namespace: Option<String>,
    tool: String,
    spec: Arc<ToolSpec>,
}

impl OfferedTools {
    /// Reads the stored tools of a thread. Kinds that this version does not know are not offered.
    pub(crate) fn of(client_tools: &[Value]) -> Self {
        let mut tools = Vec::new();
        for stored in client_tools {
            match serde_json::from_value(stored.clone()) {
                Ok(DynamicToolSpec::Function(it)) => tools.push(ClientToolSpec {
                    namespace: None,
                    spec: Arc::new(ToolSpec {
                        name: it.name.clone(),
                        description: it.description,
                        schema: it.input_schema,
                        freeform: None,
                    }),
                    tool: it.name,
                }),
                Ok(DynamicToolSpec::Namespace(group)) => {
                    for it in group.tools {
                        let DynamicToolNamespaceTool::Function(it) = it else {
                            continue;
                        };
                        // Only some vendors support namespaces, so the namespace becomes part of
                        // the name.
                        let spec = ToolSpec {
                            name: format!("{}__{}", group.name, it.name),
                            description: format!("{}\n\n{}", it.description, group.description),
                            schema: it.input_schema,
                            freeform: None,
                        };
                        tools.push(ClientToolSpec {
                            namespace: Some(group.name.clone()),
                            tool: it.name,
                            spec: Arc::new(spec),
                        });
                    }
                }
                Ok(DynamicToolSpec::Unrecognized(_)) | Err(_) => {}
            }
        }
        Self { tools, goal: false }
    }

    /// Adds the tool for the goal, if there is a goal. A client's tool with the same name takes
    /// precedence.
    pub(crate) fn with_goal(mut self, has_goal: bool) -> Self {
        self.goal = has_goal && !self.tools.iter().any(|it| it.spec.name == UPDATE_GOAL);
        self
    }

    /// Specifications for the model: the built-in tools and these. A client's tool replaces a
    /// built-in tool of the same name. Equal tools give equal bytes, so that a vendor's cache
    /// recognises them.
    pub(crate) fn specs(&self, own: Vec<Arc<ToolSpec>>) -> Vec<Arc<ToolSpec>> {
        let is_replaced = |name: &str| self.tools.iter().any(|it| it.spec.name == name);
        let own = own.into_iter().filter(|it| !is_replaced(&it.name));
        let specs = self.tools.iter().map(|it| Arc::clone(&it.spec));
        own.chain(specs)
            .chain(self.goal.then(|| Arc::new(update_goal())))
            .collect()
    }

    /// Interprets a call. Returns `None` if no offered tool has its name.
    pub(crate) fn intent(&self, call: &ToolCall) -> Option<(ItemBody, Admission)> {
        let name = &call.tool;
        let deny = |why: String| {
            let body = ItemBody::Tool(NamedTool { name: name.clone() });
            Some((body, Admission::Deny(why)))
        };
        if self.goal && name == UPDATE_GOAL && !call.freeform {
            let body = ItemBody::Tool(NamedTool { name: name.clone() });
            return Some((body, goal_admission(&call.arguments)));
        }
        let offered = self.tools.iter().find(|it| it.spec.name == *name)?;
        if call.freeform {
            return deny(format!("There is no tool named {name} that takes text."));
        }
        let arguments = match call.object() {
            Ok(arguments) => arguments,
            Err(why) => {
                return deny(format!(
                    "The tool {name} was not called, because its arguments cannot be read: {why}. Call it again \
                     with a JSON object that fits its schema."
                ));
            }
        };
        let body = ItemBody::ClientTool(ClientTool {
            tool: offered.tool.clone(),
            namespace: offered.namespace.clone(),
            arguments,
            content: None,
            duration_ms: None,
        });
        Some((body, Admission::Client))
    }
}

fn update_goal() -> ToolSpec {
    let status = json!({
        "type": "string", "enum": ["complete", "blocked"],
        "description": "complete: the goal is reached and nothing that it asks for is left. \
                        blocked: you cannot go on without help from the user.",
    });
    ToolSpec {
        name: UPDATE_GOAL.to_owned(),
        description:
            "Says where the goal of this thread stands. Call it only once it is reached, or cannot \
                      be reached without help."
                .to_owned(),
        schema: json!({
            "type": "object", "properties": { "status": status },
            "required": ["status"], "additionalProperties": false,
        }),
        freeform: None,
    }
}

/// Parses the status that the model reports.
fn goal_admission(arguments: &str) -> Admission {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    match arguments["status"].as_str() {
        Some("complete") => Admission::Goal(GoalStatus::Complete),
        Some("blocked") => Admission::Goal(GoalStatus::Blocked),
        _ => Admission::Deny("The status must be complete or blocked.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> Value {
        json!({"type": "function", "name": name, "description": "d", "inputSchema": {"type": "object"}})
    }

    fn read(specs: &Value) -> Vec<DynamicToolSpec> {
        serde_json::from_value(specs.clone()).expect("tools")
    }

    #[test]
    fn tools_that_vendors_do_not_accept_are_rejected() {
        let many: Vec<Value> = (0..=TOOLS_MAX)
            .map(|it| function(&it.to_string()))
            .collect();
        let mut long = function("a");
        long["description"] = "x".repeat(BYTES_MAX).into();
        let mut loose = function("a");
        loose["inputSchema"] = json!(true);
        let group = |name: &str, tool: &str| json!({"type": "namespace", "name": name, "description": "g", "tools": [function(tool)]});
        for (specs, expected) in [
            (json!([]), None),
            (json!([function("look-up_2")]), None),
            (
                json!([group("a", "b"), function("b"), {"type": "later"}]),
                None,
            ),
            (json!(many), Some("has 129 tools")),
            (
                json!([long]),
                Some("bytes, and a thread takes at most 262144"),
            ),
            (
                json!([loose]),
                Some("inputSchema of the tool `a` must be an object"),
            ),
            (
                json!([function("")]),
                Some("the tool name `` cannot be used"),
            ),
            (
                json!([function("a b")]),
                Some("the tool name `a b` cannot be used"),
            ),
            (
                json!([group("", "b")]),
                Some("the tool name `b` cannot be used"),
            ),
            (
                json!([group(&"n".repeat(60), "abc")]),
                Some("the tool name `abc` cannot be used"),
            ),
            (
                json!([function("a"), function("a")]),
                Some("two tools are named `a`"),
            ),
            (
                json!([function("a__b"), group("a", "b")]),
                Some("two tools are named `a__b`"),
            ),
        ] {
            let actual = client_tools(&read(&specs)).map_err(|error| error.to_string());
            match (actual, expected) {
                (Ok(stored), None) => {
                    assert_eq!(stored.len(), specs.as_array().map_or(0, Vec::len))
                }
                (Err(actual), Some(expected)) => assert!(actual.contains(expected), "{actual}"),
                (actual, expected) => panic!("{actual:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_call_goes_to_the_client_or_is_denied_at_once() {
        let group = json!({"type": "namespace", "name": "ns", "description": "g", "tools": [function("look")]});
        let offered = OfferedTools::of(&[function("look"), group]);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
        for (name, arguments, freeform, expected) in [
            ("look", r#"{"a": 1}"#, false, Ok((None, json!({"a": 1})))),
            ("ns__look", "", false, Ok((Some("ns"), json!({})))),
            (
                "look",
                "free text",
                true,
                Err("There is no tool named look that takes text."),
            ),
            ("look", "{", false, Err("they are no JSON: EOF")),
            ("look", "[]", false, Err("they are no JSON object")),
            ("look", &deep, false, Err("they are more than 64 deep")),
        ] {
            let call = ToolCall {
                id: "c".to_owned(),
                tool: name.to_owned(),
                arguments: arguments.to_owned(),
                freeform,
                alone: false,
            };
            let actual = offered.intent(&call).expect("a tool");
            match (actual, expected) {
                ((ItemBody::ClientTool(it), Admission::Client), Ok((namespace, arguments))) => {
                    assert_eq!(
                        (it.namespace.as_deref(), it.arguments),
                        (namespace, arguments)
                    );
                    assert_eq!(it.tool, "look");
                }
                ((ItemBody::Tool(_), Admission::Deny(actual)), Err(expected)) => {
                    assert!(actual.contains(expected), "{actual}");
                }
                (actual, expected) => panic!("{actual:?}, not {expected:?}"),
            }
        }
    }
}
