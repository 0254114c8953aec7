//! The tools of a manifest: `[[contributions.tools]]`.

use serde_json::{Value, json};
use toml::Table;

use super::{KeyFault, is_reserved, name, warn_of};

/// Limit: tools of one plugin; beyond it, the plugin is rejected.
const TOOLS_MAX: usize = 32;

/// Limit: name of a plugin's tool; beyond it, the plugin is rejected.
const NAME_BYTES_MAX: usize = 64;

/// Limit: description of a plugin's tool; beyond it, the plugin is rejected.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;

/// Limit: schema of a plugin's tool, as JSON; beyond it, the plugin is rejected. It is a part of
/// each model call.
const SCHEMA_BYTES_MAX: usize = 16 << 10;

const KEY: &str = "contributions.tools";

const EXAMPLE: &str = "[[contributions.tools]]";

/// A tool that a plugin offers to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginTool {
    /// Name, unique in the plugin: letters, digits, `-` and single `_`.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    pub input_schema: Value,
    /// Method of the plugin that is called with the arguments.
    pub method: String,
}

/// Takes the tools out of the contributions.
pub(super) fn take(
    contributions: &mut Table,
    warnings: &mut Vec<String>,
) -> Result<Vec<PluginTool>, KeyFault> {
    let wrong = || KeyFault::wrong(KEY, "a list of tables", EXAMPLE);
    let values = match contributions.remove("tools") {
        None => Vec::new(),
        Some(toml::Value::Array(values)) => values,
        Some(_) => return Err(wrong()),
    };
    if values.len() > TOOLS_MAX {
        let problem = format!("has more than {TOOLS_MAX} tools");
        return Err(KeyFault::new(KEY, problem, "offer fewer"));
    }
    let mut tools: Vec<PluginTool> = Vec::new();
    for value in values {
        let toml::Value::Table(keys) = value else {
            return Err(wrong());
        };
        let tool = tool(keys, warnings).map_err(|fault| fault.inside(KEY))?;
        if tools.iter().any(|it| it.name == tool.name) {
            let problem = format!("has the name `{}` twice", tool.name);
            return Err(KeyFault::new(KEY, problem, "rename one of them"));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn tool(mut keys: Table, warnings: &mut Vec<String>) -> Result<PluginTool, KeyFault> {
    let tool_name = name(&mut keys, "name", "\"issue_search\"")?;
    if !is_tool_name(&tool_name) {
        let remedy = "begin with a letter or a digit, and go on with letters, digits, - and \
                      single _, at most 64";
        return Err(KeyFault::new("name", format!("is `{tool_name}`"), remedy));
    }
    let method = name(&mut keys, "method", "\"issues/search\"")?;
    if is_reserved(&method) {
        let remedy = "name one of the plugin's own methods";
        return Err(KeyFault::new("method", format!("is `{method}`"), remedy));
    }
    let description = match keys.remove("description") {
        Some(toml::Value::String(text))
            if !text.trim().is_empty() && text.len() <= DESCRIPTION_BYTES_MAX =>
        {
            text
        }
        _ => {
            let kind = format!("a text of at most {DESCRIPTION_BYTES_MAX} bytes for the model");
            let example = "description = \"Searches issues.\"";
            return Err(KeyFault::wrong("description", &kind, example));
        }
    };
    let input_schema = match keys.remove("input_schema") {
        None => json!({ "type": "object", "properties": {} }),
        Some(schema) => {
            let schema = serde_json::to_value(schema).unwrap_or_default();
            if schema["type"] != "object" {
                let example = "input_schema = { type = \"object\", properties = {} }";
                let kind = "a JSON Schema with `type = \"object\"`";
                return Err(KeyFault::wrong("input_schema", kind, example));
            }
            if schema.to_string().len() > SCHEMA_BYTES_MAX {
                let problem = format!("is longer than {SCHEMA_BYTES_MAX} bytes as JSON");
                return Err(KeyFault::new("input_schema", problem, "shorten it"));
            }
            schema
        }
    };
    warn_of(&keys, "contributions.tools.", warnings);
    Ok(PluginTool {
        name: tool_name,
        description,
        input_schema,
        method,
    })
}

fn is_tool_name(text: &str) -> bool {
    let is_valid = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    let begins_well = text
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_alphanumeric());
    begins_well
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(is_valid)
        && !text.contains("__")
}
