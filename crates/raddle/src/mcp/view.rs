//! An MCP server as text and as JSON. Its secrets are redacted already.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_config::{McpApproval, McpServer, McpTransport};
use serde_json::{Map, Value, json};

/// Returns a line for each server: name, state and address.
pub(super) fn table(servers: &[Arc<McpServer>]) -> Vec<String> {
    let widest = servers.iter().map(|it| it.name.chars().count()).max();
    let width = widest.unwrap_or(0);
    let line = |it: &Arc<McpServer>| {
        let state = match it.enabled {
            true => "enabled",
            false => "disabled",
        };
        format!(
            "{:<width$}  {state:<8}  {}",
            it.name,
            address(&it.transport)
        )
    };
    servers.iter().map(line).collect()
}

fn address(transport: &McpTransport) -> String {
    match transport {
        McpTransport::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            let words: Vec<String> = words.map(|it| quoted(it)).collect();
            words.join(" ")
        }
        McpTransport::Http { url, .. } => url.clone(),
    }
}

/// Quotes a word of a command line that would not be one word otherwise.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| !it.is_whitespace() && !it.is_control() && !"'\"\\".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => Value::from(word).to_string(),
    }
}

/// Returns the settings of a server, a line each after its name.
pub(super) fn lines(server: &McpServer) -> Vec<String> {
    let mut lines = vec![server.name.clone()];
    let mut setting = |key: &str, value: &Value| {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            Value::Array(list) if list.is_empty() => return,
            Value::Array(list) => {
                let words = list.iter().filter_map(Value::as_str);
                let words: Vec<String> = words.map(quoted).collect();
                words.join(" ")
            }
            Value::Object(entries) => {
                let entries = entries.iter();
                let entries: Vec<String> = entries
                    .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
                    .collect();
                entries.join(" ")
            }
            other => other.to_string(),
        };
        lines.push(format!("  {key}: {text}"));
    };
    for (key, value) in transport(&server.transport) {
        setting(&key, &value);
    }
    setting("enabled", &server.enabled.into());
    for (key, value) in settings(server) {
        setting(&key, &value);
    }
    for (tool, approval) in &server.tool_approvals {
        let key = format!("tools.{tool}.approval_mode");
        setting(&key, &approval_mode(*approval).into());
    }
    lines
}

/// Returns a server as JSON, with the members of Codex and those of Raddle.
pub(super) fn json(server: &McpServer) -> Value {
    let mut all = Map::new();
    all.insert("name".to_owned(), server.name.as_str().into());
    all.insert("enabled".to_owned(), server.enabled.into());
    all.insert("disabled_reason".to_owned(), Value::Null);
    all.insert(
        "transport".to_owned(),
        Value::Object(transport(&server.transport)),
    );
    all.extend(settings(server));
    let tools = server.tool_approvals.iter();
    let tools = tools.map(|(tool, approval)| {
        let mode = approval_mode(*approval);
        (tool.clone(), json!({ "approval_mode": mode }))
    });
    all.insert("tools".to_owned(), Value::Object(tools.collect()));
    Value::Object(all)
}

fn transport(transport: &McpTransport) -> Map<String, Value> {
    let value = match transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            env_vars,
            cwd,
        } => json!({
            "type": "stdio",
            "command": command,
            "args": args,
            "env": table_or_null(env),
            "env_vars": env_vars,
            "cwd": cwd.as_ref().map(|it| it.to_string_lossy()),
        }),
        McpTransport::Http {
            url,
            bearer_token_env_var,
            headers,
            env_headers,
        } => json!({
            "type": "streamable_http",
            "url": url,
            "bearer_token_env_var": bearer_token_env_var,
            "http_headers": table_or_null(headers),
            "env_http_headers": table_or_null(env_headers),
        }),
    };
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn table_or_null(table: &BTreeMap<String, String>) -> Value {
    match table.is_empty() {
        true => Value::Null,
        false => json!(table),
    }
}

/// Returns the further settings of servers of both kinds, by their keys in the configuration.
fn settings(server: &McpServer) -> Map<String, Value> {
    let disabled_tools = &server.disabled_tools;
    let value = json!({
        "required": server.required,
        "enabled_tools": server.enabled_tools,
        "disabled_tools": (!disabled_tools.is_empty()).then_some(disabled_tools),
        "startup_timeout_sec": server.startup_timeout.as_secs_f64(),
        "tool_timeout_sec": server.tool_timeout.as_secs_f64(),
        "default_tools_approval_mode": approval_mode(server.approval),
        "network": server.network,
        "sandbox": server.sandbox,
    });
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn approval_mode(approval: McpApproval) -> &'static str {
    match approval {
        McpApproval::Auto => "auto",
        McpApproval::Prompt => "prompt",
        McpApproval::Approve => "approve",
    }
}
