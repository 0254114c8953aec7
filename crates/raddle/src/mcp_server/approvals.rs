//! Requests of the agent as forms, and the answers to them.

use std::fmt::Write;

use raddle_client::{ServerQuestion, ThreadView};
use raddle_console::{one_line, sanitize};
use raddle_plugin::mcp_server::{Form, FormAnswer, FormChoice, FormField};
use raddle_protocol::{
    CommandExecutionApprovalDecision, CommandExecutionApprovalKind,
    CommandExecutionRequestApprovalParams, FileChangeRequestApprovalParams,
    PermissionsRequestApprovalParams, ThreadItem, ToolRequestUserInputParams,
    ToolRequestUserInputQuestion,
};
use serde_json::{Map, Value, json};

/// The field of an approval.
const DECISION: &str = "decision";

/// The decisions, with their labels. They are the words of the wire.
const DECISIONS: [(&str, &str); 4] = [
    (ACCEPT, "Yes"),
    (
        ACCEPT_FOR_SESSION,
        "Yes, and do not ask again in this session",
    ),
    (DECLINE, "No, and continue the turn"),
    (CANCEL, "No, and end the turn"),
];

const ACCEPT: &str = "accept";
const ACCEPT_FOR_SESSION: &str = "acceptForSession";
const DECLINE: &str = "decline";
const CANCEL: &str = "cancel";

/// The id of the question whether a tool may be called, such as one of an MCP server, and its
/// answers. The wire has no separate request for this approval.
const MAY_CALL: &str = "may_call";
const ALLOW: &str = "Allow";
const ALLOW_FOR_SESSION: &str = "Allow for this session";
const REFUSE: &str = "Decline";

/// The maximum length of a line with text of the agent.
const LINE_LETTERS: usize = 1000;

/// The maximum length of the changes of files in a message.
const DIFF_BYTES_MAX: usize = 16 << 10;

/// Returns the form of a request; none for a request without a question that a form may ask.
pub(crate) fn form(question: &ServerQuestion, view: &ThreadView) -> Option<Form> {
    let (message, fields) = match question {
        ServerQuestion::Command(it) => (command(it), vec![decision(|word| is_offered(it, word))]),
        ServerQuestion::FileChange(it) => (file_change(it, view), vec![decision(|_| true)]),
        ServerQuestion::Permissions(it) => (permissions(it), vec![decision(|word| word != CANCEL)]),
        ServerQuestion::Question(it) => match tool_approval(it) {
            Some(approval) => (
                format!("Call this tool?\n\n{}", approval.question),
                vec![decision(|word| word != CANCEL)],
            ),
            None => {
                // A form must not ask for secrets.
                let questions = it.questions.iter().filter(|it| !it.is_secret);
                let fields = questions.map(field).collect();
                ("The agent asks".to_owned(), fields)
            }
        },
        ServerQuestion::Tool(_) | ServerQuestion::Elicitation(_) => return None,
    };
    (!fields.is_empty()).then(|| Form {
        message: sanitize(&message),
        fields,
    })
}

/// Returns the answer to a request, as the server expects it; none if the client could not show the
/// form. Every other answer that is not an approval declines.
pub(crate) fn answer(question: &ServerQuestion, form: &Form, answer: &FormAnswer) -> Option<Value> {
    if *answer == FormAnswer::Unavailable {
        return None;
    }
    Some(match question {
        ServerQuestion::Question(it) if tool_approval(it).is_some() => {
            let label = match chosen(form, answer) {
                ACCEPT => ALLOW,
                ACCEPT_FOR_SESSION => ALLOW_FOR_SESSION,
                _ => REFUSE,
            };
            json!({ "answers": { MAY_CALL: { "answers": [label] } } })
        }
        ServerQuestion::Question(it) => {
            let FormAnswer::Submitted(values) = answer else {
                return Some(json!({ "answers": {} }));
            };
            let answers = it.questions.iter().filter_map(|it| {
                let value = values.get(&it.id)?;
                Some((it.id.clone(), json!({ "answers": [value] })))
            });
            json!({ "answers": answers.collect::<Map<String, Value>>() })
        }
        ServerQuestion::Permissions(it) => match chosen(form, answer) {
            ACCEPT => json!({ "permissions": it.permissions, "scope": "turn" }),
            ACCEPT_FOR_SESSION => json!({ "permissions": it.permissions, "scope": "session" }),
            _ => json!({ "permissions": { "fileSystem": null, "network": null } }),
        },
        _ => json!({ "decision": chosen(form, answer) }),
    })
}

/// Returns the question whether a tool may be called, if the request is that one.
fn tool_approval(it: &ToolRequestUserInputParams) -> Option<&ToolRequestUserInputQuestion> {
    match it.questions.as_slice() {
        [only] if only.id == MAY_CALL => Some(only),
        _ => None,
    }
}

/// Returns the decision of an answer.
fn chosen(form: &Form, answer: &FormAnswer) -> &'static str {
    match answer {
        FormAnswer::Submitted(values) => {
            let value = values.get(DECISION).map(String::as_str);
            let mut offered = form.fields.iter().flat_map(|it| &it.choices);
            let is_offered = offered.any(|it| Some(it.value.as_str()) == value);
            let mut words = DECISIONS.into_iter().map(|(word, _)| word);
            match words.find(|it| Some(*it) == value) {
                Some(word) if is_offered => word,
                _ => {
                    tracing::warn!("a request was declined: its form has no valid decision");
                    DECLINE
                }
            }
        }
        FormAnswer::Cancelled => CANCEL,
        FormAnswer::Declined | FormAnswer::Unavailable => DECLINE,
    }
}

/// The field of an approval, with the decisions that are offered.
fn decision(is_offered: impl Fn(&str) -> bool) -> FormField {
    let offered = DECISIONS.into_iter().filter(|(word, _)| is_offered(word));
    let choices = offered.map(|(word, title)| FormChoice {
        value: word.to_owned(),
        title: title.to_owned(),
    });
    FormField {
        name: DECISION.to_owned(),
        title: "Decision".to_owned(),
        choices: choices.collect(),
    }
}

/// Whether a request about a command offers a decision. Without a list it offers all.
fn is_offered(it: &CommandExecutionRequestApprovalParams, word: &str) -> bool {
    let decision = match word {
        ACCEPT => CommandExecutionApprovalDecision::Accept,
        ACCEPT_FOR_SESSION => CommandExecutionApprovalDecision::AcceptForSession,
        DECLINE => CommandExecutionApprovalDecision::Decline,
        _ => CommandExecutionApprovalDecision::Cancel,
    };
    // A user can always refuse.
    let is_refusal = word == DECLINE;
    let available = it.available_decisions.as_ref();
    is_refusal || available.is_none_or(|it| it.contains(&decision))
}

/// A field for a question of the agent.
fn field(question: &ToolRequestUserInputQuestion) -> FormField {
    let options = question.options.as_deref().unwrap_or_default();
    let labels: Vec<&str> = options.iter().map(|it| it.label.as_str()).collect();
    let mut title = question.question.clone();
    let choices = match question.is_other {
        // A choice with other values is free text for a form.
        true if !labels.is_empty() => {
            title = format!("{title} ({}, or another answer)", labels.join(", "));
            Vec::new()
        }
        _ => options
            .iter()
            .map(|it| FormChoice {
                value: it.label.clone(),
                title: line(&format!("{}: {}", it.label, it.description)),
            })
            .collect(),
    };
    FormField {
        name: question.id.clone(),
        title: sanitize(&title),
        choices,
    }
}

// In each message, text of the agent that may have several lines comes last. So it cannot imitate
// the lines before it.

fn command(it: &CommandExecutionRequestApprovalParams) -> String {
    let words = match it.kind {
        CommandExecutionApprovalKind::WriteStdin => "Type into this running command",
        _ => "Run this command",
    };
    let folder = it.cwd.as_ref().map(|it| format!(" in {}", line(it)));
    let mut message = format!("{words}{}?", folder.unwrap_or_default());
    if let Some(host) = &it.network_approval_context {
        let _ = write!(message, "\nIt may reach {}", line(&host.host));
    }
    if let Some(more) = &it.additional_permissions {
        let _ = write!(message, "\nIt has these permissions: {}", json!(more));
    }
    because(&mut message, it.reason.as_deref());
    let _ = write!(message, "\n\n{}", it.command.as_deref().unwrap_or_default());
    message
}

fn file_change(it: &FileChangeRequestApprovalParams, view: &ThreadView) -> String {
    let mut message = match &it.grant_root {
        Some(root) => format!("Change files below {}?", line(root)),
        None => "Change these files?".to_owned(),
    };
    because(&mut message, it.reason.as_deref());
    if let Some(ThreadItem::FileChange(item)) = view.item(&it.turn_id, &it.item_id) {
        for change in &item.changes {
            let _ = write!(message, "\n{}", line(&change.path));
        }
        let diffs: Vec<&str> = item.changes.iter().map(|it| it.diff.as_str()).collect();
        let diff = diffs.join("\n");
        let shown = &diff[..diff.floor_char_boundary(DIFF_BYTES_MAX)];
        if shown.len() < diff.len() {
            let hidden_bytes = diff.len() - shown.len();
            let _ = write!(
                message,
                "\n{hidden_bytes} bytes of the changes are not shown"
            );
        }
        let _ = write!(message, "\n\n{shown}");
    }
    message
}

fn permissions(it: &PermissionsRequestApprovalParams) -> String {
    let mut message = format!("Grant these permissions?\n{}", json!(it.permissions));
    because(&mut message, it.reason.as_deref());
    message
}

/// Adds the reason, which may quote the agent.
fn because(message: &mut String, reason: Option<&str>) {
    if let Some(reason) = reason {
        let _ = write!(message, "\nBecause: {}", line(reason));
    }
}

/// Returns text of the agent as one line.
fn line(text: &str) -> String {
    one_line(text, LINE_LETTERS)
}

#[cfg(test)]
mod tests;
