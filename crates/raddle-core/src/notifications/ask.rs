//! Requests as they are on the wire.

use raddle_protocol as wire;
use raddle_protocol::table::ServerMethod;
use serde_json::Value;

use super::item::actions;
use crate::thread::hunks_of;
use crate::{
    Ask, AskCommand, AskTool, CommandSource, ItemBody, RequestAnswer, RequestNumber,
    RequestResolved, Resolution, Thread, ThreadId, ToolCall,
};

/// Returns the notification that a request was resolved.
pub(super) fn resolved(
    thread_id: ThreadId,
    it: &RequestResolved,
) -> wire::ServerRequestResolvedNotification {
    use wire::RequestDecision as Decision;
    let (resolved_by, decision) = match &it.resolution {
        Resolution::Answered { by, answer } => {
            let decision = match &**answer {
                RequestAnswer::Accept {} => Decision::Accept,
                RequestAnswer::AcceptForSession {} => Decision::AcceptForSession,
                RequestAnswer::AcceptWithRule { .. } => Decision::AcceptWithRule,
                RequestAnswer::AcceptHunks { .. } => Decision::AcceptHunks,
                RequestAnswer::Decline {} => Decision::Decline,
                RequestAnswer::Cancel {} => Decision::Cancel,
                RequestAnswer::Failed { .. } => Decision::Failed,
                RequestAnswer::Permissions { .. }
                | RequestAnswer::Answers { .. }
                | RequestAnswer::Tool { .. }
                | RequestAnswer::Elicitation { .. } => Decision::Answered,
            };
            (Some(by.clone()), decision)
        }
        Resolution::Expired {} => (None, Decision::Expired),
        Resolution::Withdrawn {} => (None, Decision::Withdrawn),
    };
    wire::ServerRequestResolvedNotification {
        thread_id,
        request_id: super::request_id(thread_id, it.request),
        decision: Some(decision),
        resolved_by,
    }
}

/// Returns a request as it is on the wire: its id, its method and its params.
///
/// `None` if no request of that number is open.
pub fn ask(
    thread: &Thread,
    request: RequestNumber,
) -> Option<(wire::RequestId, &'static str, Value)> {
    let thread_id = thread.id()?;
    let open = thread.requests.get(&request)?;
    let turn_id = open.turn.clone();
    let item_id = open.item.clone();
    let started_at_ms = open.opened_at.0;
    let call = thread
        .open_item(&open.item)
        .and_then(|open| open.item.call.as_ref());
    let (method, params) = match &open.ask {
        Ask::Command(it) => method_and_params::<wire::ItemCommandExecutionRequestApproval>(
            &wire::CommandExecutionRequestApprovalParams {
                thread_id,
                turn_id,
                item_id,
                started_at_ms,
                additional_permissions: None,
                approval_id: None,
                available_decisions: Some(decisions(it)),
                command: Some(it.command.clone()),
                command_actions: Some(actions(&it.actions)),
                cwd: Some(it.cwd.clone()),
                environment_id: None,
                kind: match thread.open_item(&open.item).map(|open| &open.item.body) {
                    Some(ItemBody::Command(run)) if run.source == CommandSource::Typed => {
                        wire::CommandExecutionApprovalKind::WriteStdin
                    }
                    _ => wire::CommandExecutionApprovalKind::Command,
                },
                network_approval_context: None,
                proposed_execpolicy_amendment: (!it.rule.is_empty()).then(|| it.rule.clone()),
                proposed_network_policy_amendments: None,
                reason: it.reason.clone(),
            },
        ),
        Ask::Patch(it) => method_and_params::<wire::ItemFileChangeRequestApproval>(
            &wire::FileChangeRequestApprovalParams {
                thread_id,
                turn_id,
                item_id,
                started_at_ms,
                grant_root: it.root.clone(),
                reason: it.reason.clone(),
                hunks: Some(hunks(thread, open)),
            },
        ),
        Ask::Tool(it) => {
            method_and_params::<wire::ItemToolRequestUserInput>(&wire::ToolRequestUserInputParams {
                thread_id,
                turn_id,
                item_id,
                is_blocking: true,
                questions: vec![may_call(it, call)],
                auto_resolution_ms: None,
            })
        }
        Ask::Permissions(it) => method_and_params::<wire::ItemPermissionsRequestApproval>(
            &wire::PermissionsRequestApprovalParams {
                thread_id,
                turn_id,
                item_id,
                cwd: it.cwd.clone(),
                permissions: serde_json::from_value(it.permissions.clone()).unwrap_or(
                    wire::RequestPermissionProfile {
                        file_system: None,
                        network: None,
                    },
                ),
                started_at_ms,
                environment_id: None,
                reason: it.reason.clone(),
            },
        ),
        Ask::Questions(it) => {
            let questions = it
                .questions
                .iter()
                .map(|it| wire::ToolRequestUserInputQuestion {
                    id: it.id.clone(),
                    header: it.header.clone(),
                    question: it.question.clone(),
                    is_other: it.other,
                    is_secret: it.secret,
                    options: it.options.as_ref().map(|options| {
                        let options = options.iter().map(|it| wire::ToolRequestUserInputOption {
                            description: it.description.clone(),
                            label: it.label.clone(),
                        });
                        options.collect()
                    }),
                });
            method_and_params::<wire::ItemToolRequestUserInput>(&wire::ToolRequestUserInputParams {
                thread_id,
                turn_id,
                item_id,
                is_blocking: it.trust_folder.is_none(),
                questions: questions.collect(),
                auto_resolution_ms: None,
            })
        }
        Ask::ClientTool {} => {
            method_and_params::<wire::ItemToolCall>(&client_tool(thread, open, call)?)
        }
        Ask::Elicitation(it) => (
            wire::McpServerElicitationRequest::NAME,
            Ok(elicitation(thread_id, &turn_id, it)),
        ),
    };
    // Raddle's own types always convert to JSON.
    let params = params.ok()?;
    Some((super::request_id(thread_id, request), method, params))
}

/// Returns the hunks that the user may choose among.
fn hunks(thread: &Thread, open: &crate::thread::OpenRequest) -> Vec<wire::ProposedHunk> {
    let Some(ItemBody::Patch(patch)) = thread.open_item(&open.item).map(|it| &it.item.body) else {
        return Vec::new();
    };
    let hunks = hunks_of(thread, open).into_iter();
    let hunks = hunks.map(|it| wire::ProposedHunk {
        path: patch
            .changes
            .get(it.file)
            .map_or_else(String::new, |it| it.path.clone()),
        hunk: wire::DiffHunk {
            id: it.id,
            old_start: it.before.start + 1,
            old_lines: it.before.len() as u32,
            new_start: it.after.start + 1,
            new_lines: it.after.len() as u32,
            old_text: it.old,
            new_text: it.new,
        },
    });
    hunks.collect()
}

/// Id of the question whether a tool may be called, and its possible answers. The contract has no
/// separate request for this, so it is a question to the user.
const MAY_CALL: &str = "may_call";
const ALLOW: &str = "Allow";
const ALLOW_FOR_SESSION: &str = "Allow for this session";
const DECLINE: &str = "Decline";

fn may_call(it: &AskTool, call: Option<&ToolCall>) -> wire::ToolRequestUserInputQuestion {
    let arguments = call.map(|call| call.arguments.as_str()).unwrap_or_default();
    let reason = it.reason.as_deref().unwrap_or_default();
    let option = |label: &str, description: &str| wire::ToolRequestUserInputOption {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    wire::ToolRequestUserInputQuestion {
        id: MAY_CALL.to_owned(),
        header: "Tool call".to_owned(),
        question: format!(
            "May the tool {} be called with {arguments}? {reason}",
            it.tool
        )
        .trim_end()
        .to_owned(),
        is_other: false,
        is_secret: false,
        options: Some(vec![
            option(ALLOW, "It is called this once."),
            option(
                ALLOW_FOR_SESSION,
                "It is called, and exactly this call is not asked about again.",
            ),
            option(DECLINE, "It is not called."),
        ]),
    }
}

/// Converts the answers to that question. Any answer but an exact approval declines.
pub fn may_call_answer(answers: &wire::ToolRequestUserInputResponse) -> RequestAnswer {
    let chosen = answers
        .answers
        .get(MAY_CALL)
        .map(|it| it.answers.as_slice());
    match chosen {
        Some([label]) if label == ALLOW => RequestAnswer::Accept {},
        Some([label]) if label == ALLOW_FOR_SESSION => RequestAnswer::AcceptForSession {},
        _ => RequestAnswer::Decline {},
    }
}

/// Returns the decisions that a client may take on a command.
fn decisions(it: &AskCommand) -> Vec<wire::CommandExecutionApprovalDecision> {
    use wire::CommandExecutionApprovalDecision as Decision;
    let mut decisions = vec![Decision::Accept, Decision::AcceptForSession];
    if !it.rule.is_empty() {
        let amendment = wire::ExecpolicyAmendmentDecision {
            execpolicy_amendment: it.rule.clone(),
        };
        decisions.push(Decision::AcceptWithExecpolicyAmendment(amendment));
    }
    decisions.extend([Decision::Decline, Decision::Cancel]);
    decisions
}

fn method_and_params<M: ServerMethod>(
    params: &M::Params,
) -> (&'static str, serde_json::Result<Value>) {
    (M::NAME, serde_json::to_value(params))
}

fn client_tool(
    thread: &Thread,
    open: &crate::thread::OpenRequest,
    call: Option<&ToolCall>,
) -> Option<wire::DynamicToolCallParams> {
    let item = thread.open_item(&open.item)?;
    let ItemBody::ClientTool(tool) = &item.item.body else {
        return None;
    };
    Some(wire::DynamicToolCallParams {
        thread_id: thread.id()?,
        turn_id: open.turn.clone(),
        call_id: call?.id.clone(),
        arguments: tool.arguments.clone(),
        tool: tool.tool.clone(),
        namespace: tool.namespace.clone(),
    })
}

fn elicitation(
    thread_id: crate::ThreadId,
    turn_id: &crate::TurnId,
    it: &crate::AskElicitation,
) -> Value {
    let mut body = it.body.clone();
    if let Value::Object(members) = &mut body {
        members.insert("threadId".to_owned(), thread_id.to_string().into());
        members.insert("turnId".to_owned(), turn_id.as_str().into());
        members.insert("serverName".to_owned(), it.server.clone().into());
    }
    body
}
