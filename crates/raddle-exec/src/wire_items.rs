//! Maps items of the protocol to items of the events.

use raddle_protocol::{
    CollabAgentToolCallStatus, CommandExecutionStatus, ItemId, McpToolCallStatus, PatchApplyStatus,
    PatchChangeKind, ThreadItem, ThreadTokenUsage, TurnPlanStep, TurnPlanStepStatus,
    WebSearchAction,
};
use serde_json::{Value, json};

use super::events::{AgentState, Change, ErrorText, ExecItemBody, McpResult, Todo, Usage};

/// An item as it is reported.
pub(crate) struct ItemReport<'a> {
    pub(crate) id: &'a ItemId,
    pub(crate) body: ExecItemBody,
    pub(crate) is_over: bool,
}

/// Maps an item; `None` for kinds that are not reported.
pub(crate) fn item_report(item: &ThreadItem) -> Option<ItemReport<'_>> {
    let body = body(item)?;
    let (id, completed_at) = match item {
        ThreadItem::AgentMessage(it) => (&it.id, it.completed_at_ms),
        ThreadItem::Reasoning(it) => (&it.id, it.completed_at_ms),
        ThreadItem::CommandExecution(it) => (&it.id, it.completed_at_ms),
        ThreadItem::FileChange(it) => (&it.id, it.completed_at_ms),
        ThreadItem::McpToolCall(it) => (&it.id, it.completed_at_ms),
        ThreadItem::CollabAgentToolCall(it) => (&it.id, it.completed_at_ms),
        ThreadItem::WebSearch(it) => (&it.id, it.completed_at_ms),
        _ => return None,
    };
    Some(ItemReport {
        id,
        body,
        is_over: completed_at.is_some(),
    })
}

fn body(item: &ThreadItem) -> Option<ExecItemBody> {
    Some(match item {
        ThreadItem::AgentMessage(it) => ExecItemBody::AgentMessage {
            text: it.text.clone(),
        },
        ThreadItem::Reasoning(it) => {
            let text = it.summary.join("\n");
            if text.trim().is_empty() {
                return None;
            }
            ExecItemBody::Reasoning { text }
        }
        ThreadItem::CommandExecution(it) => ExecItemBody::CommandExecution {
            command: it.command.clone(),
            aggregated_output: it.aggregated_output.clone().unwrap_or_default(),
            exit_code: it.exit_code,
            status: match it.status {
                CommandExecutionStatus::Completed => "completed",
                CommandExecutionStatus::Failed => "failed",
                CommandExecutionStatus::Declined => "declined",
                _ => "in_progress",
            },
        },
        ThreadItem::FileChange(it) => ExecItemBody::FileChange {
            changes: it
                .changes
                .iter()
                .map(|change| Change {
                    path: change.path.clone(),
                    kind: kind(&change.kind),
                })
                .collect(),
            status: match it.status {
                PatchApplyStatus::Completed => "completed",
                PatchApplyStatus::Failed | PatchApplyStatus::Declined => "failed",
                _ => "in_progress",
            },
            is_declined: it.status == PatchApplyStatus::Declined,
        },
        ThreadItem::McpToolCall(it) => ExecItemBody::McpToolCall {
            server: it.server.clone(),
            tool: it.tool.clone(),
            arguments: it.arguments.clone(),
            result: it.result.as_ref().map(|result| McpResult {
                content: result.content.clone(),
                structured_content: result.structured_content.clone(),
                meta: result.meta.clone(),
            }),
            error: it.error.as_ref().map(|error| ErrorText {
                message: error.message.clone(),
            }),
            status: match it.status {
                McpToolCallStatus::Completed => "completed",
                McpToolCallStatus::Failed => "failed",
                _ => "in_progress",
            },
        },
        ThreadItem::CollabAgentToolCall(it) => ExecItemBody::CollabToolCall {
            tool: snake(it.tool.as_str()),
            sender_thread_id: it.sender_thread_id.to_string(),
            receiver_thread_ids: it
                .receiver_thread_ids
                .iter()
                .map(ToString::to_string)
                .collect(),
            prompt: it.prompt.clone(),
            agents_states: it
                .agents_states
                .iter()
                .map(|(thread, state)| {
                    let agent_state = AgentState {
                        status: snake(state.status.as_str()),
                        message: state.message.clone(),
                    };
                    (thread.clone(), agent_state)
                })
                .collect(),
            status: match it.status {
                CollabAgentToolCallStatus::Completed => "completed",
                CollabAgentToolCallStatus::Failed | CollabAgentToolCallStatus::Interrupted => {
                    "failed"
                }
                _ => "in_progress",
            },
        },
        ThreadItem::WebSearch(it) => ExecItemBody::WebSearch {
            query: it.query.clone(),
            action: action(it.action.as_ref()),
        },
        _ => return None,
    })
}

/// Whether an item is reported only when it is complete.
pub(crate) fn is_reported_whole(body: &ExecItemBody) -> bool {
    matches!(
        body,
        ExecItemBody::AgentMessage { .. } | ExecItemBody::Reasoning { .. }
    )
}

pub(crate) fn todo(plan: &[TurnPlanStep]) -> Vec<Todo> {
    plan.iter()
        .map(|it| Todo {
            text: it.step.clone(),
            completed: it.status == TurnPlanStepStatus::Completed,
        })
        .collect()
}

pub(crate) fn usage(tokens: &ThreadTokenUsage) -> Usage {
    let all = &tokens.total;
    Usage {
        input_tokens: all.input_tokens,
        cached_input_tokens: all.cached_input_tokens,
        cache_write_input_tokens: all.cache_write_input_tokens,
        output_tokens: all.output_tokens,
        reasoning_output_tokens: all.reasoning_output_tokens,
    }
}

/// Appends the details in parentheses, if there are any.
pub(crate) fn with_details(text: &str, details: Option<&str>) -> String {
    match details.filter(|it| !it.is_empty()) {
        Some(details) => format!("{text} ({details})"),
        None => text.to_owned(),
    }
}

pub(crate) fn kind(kind: &PatchChangeKind) -> &'static str {
    match kind {
        PatchChangeKind::Add => "add",
        PatchChangeKind::Delete => "delete",
        _ => "update",
    }
}

fn action(action: Option<&WebSearchAction>) -> Value {
    match action {
        Some(WebSearchAction::Search(it)) => {
            json!({ "type": "search", "query": it.query, "queries": it.queries })
        }
        Some(WebSearchAction::OpenPage(it)) => json!({ "type": "open_page", "url": it.url }),
        Some(WebSearchAction::FindInPage(it)) => {
            json!({ "type": "find_in_page", "url": it.url, "pattern": it.pattern })
        }
        _ => json!({ "type": "other" }),
    }
}

/// Converts `spawnAgent` to `spawn_agent`.
fn snake(word: &str) -> String {
    let mut snake = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
