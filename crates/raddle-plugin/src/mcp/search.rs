//! Search of MCP tools, where there are too many to describe all of them to the model.

use std::sync::Arc;

use raddle_core::ports::ToolSpec;
use serde_json::{Value, json};

use super::call_result::shortened;
use super::tool_table::McpTool;

/// Limit: descriptions of MCP tools that are part of a model call, in bytes (about 10,000 tokens);
/// beyond it, the model finds the tools with `search_tools`.
const OFFERED_BYTES_MAX: usize = 40_000;

/// Limit: MCP tools that are part of a model call; beyond it, the model finds the tools with
/// `search_tools`.
const OFFERED_MAX: usize = 60;

/// Names in the description of `search_tools`; further ones are only counted.
const NAMES_BYTES_MAX: usize = 8_000;

/// Tools that one search returns.
const FOUND_MAX: usize = 8;

/// Name of the tool that searches.
pub(crate) const SEARCH: &str = "search_tools";

/// Name of the tool that calls a tool which a search found.
pub(crate) const CALL: &str = "call_mcp_tool";

/// Whether all these tools are offered to the model by their descriptions.
pub(crate) fn fit(tools: &[Arc<McpTool>]) -> bool {
    let bytes: usize = tools.iter().map(|it| it.definition.to_string().len()).sum();
    tools.len() <= OFFERED_MAX && bytes <= OFFERED_BYTES_MAX
}

/// Returns the specifications of the two tools that stand for all these tools.
pub(crate) fn specs(tools: &[Arc<McpTool>]) -> [Arc<ToolSpec>; 2] {
    let mut names = String::new();
    let mut left_out = 0;
    for tool in tools {
        match names.len() + tool.spec.name.len() < NAMES_BYTES_MAX {
            true => {
                names.push('\n');
                names.push_str(&tool.spec.name);
            }
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        names.push_str(&format!("\n… and {left_out} more"));
    }
    let search = ToolSpec {
        name: SEARCH.to_owned(),
        description: format!(
            "Finds tools of the connected MCP servers and returns their descriptions and schemas. Search by words of \
             a name or a task, and then call the tool with {CALL}. The tools are:{names}"
        ),
        schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words to search for."}},
            "required": ["query"], "additionalProperties": false,
        }),
        freeform: None,
    };
    let call = ToolSpec {
        name: CALL.to_owned(),
        description: format!("Calls a tool of an MCP server that {SEARCH} found."),
        schema: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Name of the tool."},
                "arguments": {"type": "object", "description": "Arguments that fit its schema."},
            },
            "required": ["name", "arguments"], "additionalProperties": false,
        }),
        freeform: None,
    };
    [Arc::new(search), Arc::new(call)]
}

/// Returns the tools that match a query best, as text for the model.
pub(crate) fn find(tools: &[Arc<McpTool>], query: &str) -> String {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<(usize, &Arc<McpTool>)> = tools
        .iter()
        .map(|it| (score(it, &words), it))
        .filter(|(score, _)| *score > 0)
        .collect();
    // The sort is stable, so tools with the same score keep the order of their names.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    if found.is_empty() {
        return "No tool matches. Search for other words.".to_owned();
    }
    let described = found.iter().take(FOUND_MAX).map(|(_, it)| {
        json!({
            "name": it.spec.name,
            "description": it.spec.description,
            "parameters": it.spec.schema,
        })
    });
    let described: Vec<Value> = described.collect();
    shortened(&Value::Array(described).to_string())
}

/// Rates how well a tool matches: a word in its name counts more than one in its description.
fn score(tool: &McpTool, words: &[String]) -> usize {
    let name = tool.spec.name.to_lowercase();
    let description = tool.spec.description.to_lowercase();
    let rate = |word: &String| {
        let in_name = if name.contains(word.as_str()) { 3 } else { 0 };
        let in_description = usize::from(description.contains(word.as_str()));
        in_name + in_description
    };
    words.iter().map(rate).sum()
}
