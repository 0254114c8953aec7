//! The answers of clients to the requests of a thread.

use std::sync::Arc;

use raddle_agent::{IMAGES_BYTES_MAX, ImageError, NewImage, Threads};
use raddle_core::{
    AnswerRequest, Ask, Command, HunkDecision, Image, Output, RequestAnswer, RequestNumber,
    ThreadId, may_call_answer,
};
use raddle_protocol as wire;
use raddle_rpc::{Id, InboundResponse};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::input::IMAGES_MAX;
use super::session_subscriber;
use crate::services::ServerState;
use crate::session::Session;
use crate::spans;

/// Limit: the result of a client's tool without its images; beyond it, the call fails, and the
/// model is notified.
const TOOL_BYTES_MAX: usize = 1 << 20;

/// Limit: a client's answer to a question of an MCP server; beyond it, the question is declined.
const ELICITATION_BYTES_MAX: usize = 64 << 10;

/// Limit: a client's decisions on the hunks of a change; beyond it, the approval fails, and nothing is
/// changed.
const HUNKS_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting of such an answer. A record with a deeper one could not be read again.
const ELICITATION_DEPTH_MAX: usize = 16;

/// Passes an answer to the thread that asked. The first one counts; an answer to no open request is
/// only logged. An error means that this client cannot answer, and counts if no other client can.
pub(crate) fn handle_answer(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    response: InboundResponse<'_>,
) {
    let may_answer = |id: &ThreadId| !session.is_observer() && session.threads().contains(id);
    let named_request = request_of_id(&response.id).filter(|(id, _)| may_answer(id));
    let handle = named_request.and_then(|(id, _)| state.threads.live(id));
    let (Some((id, request)), Some(handle)) = (named_request, handle) else {
        session.counts.noise();
        tracing::info!(id = ?response.id, "response to an unknown request id");
        return;
    };
    // Even a short answer has a cost.
    let bytes = match &response.outcome {
        Ok(result) => result.get().len(),
        Err(error) => error.message.len(),
    };
    let cost = u32::try_from(16 + bytes / 1024).unwrap_or(u32::MAX);
    let Ok(permit) = session.answers.clone().try_acquire_many_owned(cost) else {
        session.counts.noise();
        tracing::warn!(connection = session.number, %request, "too many pending answers; one was dropped");
        return;
    };
    let answer_body = response.outcome.map(RawValue::to_owned);
    let answer_body = answer_body.map_err(|error| error.message.into_owned());
    let (session, threads) = (session.clone(), state.threads.clone());
    spans::spawn(async move {
        let _permit = permit;
        let ask = handle.inspect(move |thread| {
            let mut open = thread.requests();
            open.find_map(|(number, open)| (number == request).then(|| open.ask.clone()))
        });
        // Another client was faster, or the request is no longer open.
        let Ok(Some(ask)) = ask.await else {
            return tracing::info!(%request, "late answer to a closed request");
        };
        if answer_body.is_err()
            && handle
                .note_cannot_answer(request, session_subscriber(&session))
                .await
                != Ok(true)
        {
            return tracing::info!(%request, "a client cannot answer");
        }
        let has_hunks = session.client().is_some_and(|it| it.has_hunks);
        let answer = match answer(&ask, answer_body) {
            RequestAnswer::AcceptHunks { .. } if !has_hunks => failed(
                "acceptHunks is for clients that enabled the extension raddle/hunks".to_owned(),
            ),
            RequestAnswer::Tool { output, content } => {
                store_images(&threads, id, output, content).await
            }
            answer => answer,
        };
        let command = Command::AnswerRequest(Box::new(AnswerRequest {
            request,
            by: answered_by(&session),
            answer,
        }));
        let on_result = move |outcome: Result<_, _>| {
            if let Err(error) = outcome {
                tracing::info!(%request, %error, "an answer was rejected");
            }
        };
        handle.send_command(command, on_result).await;
    });
}

/// Returns the thread and the number that the id of a request names.
pub(crate) fn request_of_id(id: &Id) -> Option<(ThreadId, RequestNumber)> {
    let Id::String(id) = id else {
        return None;
    };
    let (thread, number) = id.split_once(':')?;
    Some((thread.parse().ok()?, RequestNumber(number.parse().ok()?)))
}

/// Returns the name of the answering user or client, for the record.
fn answered_by(session: &Session) -> String {
    let client = session.client().map(|client| client.name.as_str());
    let principal = session.peer.principal.as_deref();
    principal.or(client).unwrap_or_default().to_owned()
}

/// Converts an answer. One that cannot be parsed, or an error, declines in the form of the request.
fn answer(ask: &Ask, body: Result<Box<RawValue>, String>) -> RequestAnswer {
    match ask {
        Ask::Command(_) => read(body).map_or_else(failed, command),
        Ask::Patch(_) => read(body).map_or_else(failed, patch),
        Ask::Tool(_) => read(body).map_or_else(failed, |body_value| may_call_answer(&body_value)),
        Ask::ClientTool {} => read(body).and_then(tool).unwrap_or_else(failed),
        Ask::Permissions(_) => {
            let granted: Result<wire::PermissionsRequestApprovalResponse, _> = read(body);
            let granted = granted.map(|it| serde_json::to_value(it).unwrap_or_default());
            RequestAnswer::Permissions {
                granted: granted.unwrap_or_else(|_| serde_json::json!({ "permissions": {} })),
            }
        }
        Ask::Questions(_) => {
            let response: Result<wire::ToolRequestUserInputResponse, _> = read(body);
            let answers = response
                .map(|it| it.answers)
                .unwrap_or_default()
                .into_iter();
            RequestAnswer::Answers {
                answers: answers
                    .map(|(question, it)| (question, it.answers))
                    .collect(),
            }
        }
        Ask::Elicitation(_) => RequestAnswer::Elicitation {
            body: elicitation(body).unwrap_or_else(|| serde_json::json!({ "action": "decline" })),
        },
    }
}

fn read<T: DeserializeOwned>(body: Result<Box<RawValue>, String>) -> Result<T, String> {
    let body = body?;
    serde_json::from_str(body.get()).map_err(|error| format!("the answer cannot be read: {error}"))
}

fn failed(message: String) -> RequestAnswer {
    RequestAnswer::Failed { message }
}

fn command(response: wire::CommandExecutionRequestApprovalResponse) -> RequestAnswer {
    use wire::CommandExecutionApprovalDecision as Decision;
    let rule = |it: Value| RequestAnswer::AcceptWithRule { rule: it };
    match &response.decision {
        Decision::Accept => RequestAnswer::Accept {},
        Decision::AcceptForSession => RequestAnswer::AcceptForSession {},
        Decision::ApplyNetworkPolicyAmendment(it)
            if it.network_policy_amendment.action != wire::NetworkPolicyRuleAction::Allow =>
        {
            RequestAnswer::Decline {}
        }
        Decision::AcceptWithExecpolicyAmendment(_) | Decision::ApplyNetworkPolicyAmendment(_) => {
            rule(serde_json::to_value(&response.decision).unwrap_or_default())
        }
        Decision::Decline => RequestAnswer::Decline {},
        Decision::Cancel => RequestAnswer::Cancel {},
        Decision::Unrecognized(_) => failed("unknown decision".to_owned()),
    }
}

fn patch(response: wire::FileChangeRequestApprovalResponse) -> RequestAnswer {
    use wire::FileChangeApprovalDecision as Decision;
    match response.decision {
        Decision::Accept => RequestAnswer::Accept {},
        Decision::AcceptForSession => RequestAnswer::AcceptForSession {},
        Decision::AcceptHunks(it) => accepted_hunks(it),
        Decision::Decline => RequestAnswer::Decline {},
        Decision::Cancel => RequestAnswer::Cancel {},
        Decision::Unrecognized(_) => failed("unknown decision".to_owned()),
    }
}

fn accepted_hunks(it: wire::AcceptHunksDecision) -> RequestAnswer {
    let text_bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes_of = |it: &wire::HunkDecision| {
        it.id.len() + text_bytes(&it.comment) + text_bytes(&it.replacement)
    };
    let bytes: usize = it.hunks.iter().map(bytes_of).sum();
    if bytes > HUNKS_BYTES_MAX {
        return failed(format!(
            "the decisions on hunks have {bytes} bytes, and at most {HUNKS_BYTES_MAX} are accepted"
        ));
    }
    let hunks = it.hunks.into_iter().map(|it| HunkDecision {
        id: it.id,
        accept: it.accept,
        comment: it.comment.filter(|it| !it.is_empty()),
        replacement: it.replacement,
    });
    RequestAnswer::AcceptHunks {
        hunks: hunks.collect(),
    }
}

/// Returns the answer to a question of an MCP server; `None` if it is too long or cannot be read.
fn elicitation(body: Result<Box<RawValue>, String>) -> Option<Value> {
    let body = body.ok()?;
    if body.get().len() > ELICITATION_BYTES_MAX {
        return None;
    }
    let response: wire::McpServerElicitationRequestResponse = read(Ok(body)).ok()?;
    if let wire::McpServerElicitationAction::Unrecognized(_) = response.action {
        return None;
    }
    let body = serde_json::to_value(response).ok()?;
    is_shallow(&body, ELICITATION_DEPTH_MAX).then_some(body)
}

/// Whether a value nests at most this deep.
fn is_shallow(value: &Value, depth: usize) -> bool {
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(values) => Box::new(values.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return true,
    };
    let inner_depth = depth.checked_sub(1);
    inner_depth.is_some_and(|depth| inner.all(|it| is_shallow(it, depth)))
}

fn tool(response: wire::DynamicToolCallResponse) -> Result<RequestAnswer, String> {
    use wire::DynamicToolCallOutputContentItem as Content;
    let mut output = Output {
        failed: !response.success,
        ..Output::default()
    };
    let mut bytes = 0;
    for content in &response.content_items {
        match content {
            Content::InputText(it) => {
                bytes += it.text.len();
                if !output.text.is_empty() {
                    output.text.push('\n');
                }
                output.text.push_str(&it.text);
            }
            Content::InputImage(it) => output.images.push(Image::Url {
                url: it.image_url.clone(),
            }),
            // No model here accepts audio, and content of an unknown type cannot be sent to one.
            Content::InputAudio(it) => bytes += it.audio_url.len(),
            Content::Unrecognized(it) => bytes += Value::Object(it.clone()).to_string().len(),
        }
    }
    if bytes > TOOL_BYTES_MAX {
        return Err(format!(
            "the tool gave {bytes} bytes beside images, and at most {TOOL_BYTES_MAX} are taken; ask it for less"
        ));
    }
    Ok(RequestAnswer::Tool {
        output,
        content: serde_json::to_value(&response.content_items).unwrap_or_default(),
    })
}

/// Stores the images of a tool's result. The record of the answer only names them.
async fn store_images(
    threads: &Threads,
    id: ThreadId,
    mut output: Output,
    mut content: Value,
) -> RequestAnswer {
    if output.images.len() > IMAGES_MAX {
        return failed(format!(
            "a tool may give at most {IMAGES_MAX} images for one call"
        ));
    }
    let mut new_images = Vec::new();
    let mut bytes = 0;
    for image in &output.images {
        let Image::Url { url } = image else {
            continue;
        };
        match NewImage::of_url(url) {
            Ok(new_image) => {
                bytes += new_image.bytes();
                new_images.push(new_image);
            }
            Err(error) => {
                return failed(format!(
                    "an image of the tool's result was rejected: {error}"
                ));
            }
        }
    }
    if bytes > IMAGES_BYTES_MAX {
        let error = ImageError::TooLarge;
        return failed(format!(
            "the images of the tool's result were rejected: {error}"
        ));
    }
    output.images.clear();
    for new_image in new_images {
        match threads.keep(id, new_image).await {
            Ok(image) => output.images.push(image),
            Err(error) => return failed(format!("an image could not be stored: {error}")),
        }
    }
    let parts = content.as_array_mut().into_iter().flatten();
    let image_parts = parts.filter(|part| part["type"] == "inputImage");
    for (part, image) in image_parts.zip(&output.images) {
        if let Image::Blob(blob) = image {
            part["imageUrl"] = blob.url().into();
        }
    }
    RequestAnswer::Tool { output, content }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_to_a_question_of_an_mcp_server_is_bounded() {
        let accepted = json!({"action": "accept", "content": {"a": [1]}, "_meta": null});
        let long = "x".repeat(ELICITATION_BYTES_MAX);
        let mut deep = json!(1);
        for _ in 0..ELICITATION_DEPTH_MAX {
            deep = json!([deep]);
        }
        for (body, expected) in [
            (accepted.clone(), Some(accepted)),
            (
                json!({"action": "cancel"}),
                Some(json!({"action": "cancel", "content": null, "_meta": null})),
            ),
            (json!({}), None),
            (json!({"action": "perhaps"}), None),
            (json!({"action": "accept", "content": {"a": long}}), None),
            (json!({"action": "accept", "content": {"a": deep}}), None),
        ] {
            let raw = RawValue::from_string(body.to_string()).expect("JSON");
            assert_eq!(elicitation(Ok(raw)), expected, "{body}");
        }
        assert_eq!(elicitation(Err("no".to_owned())), None);
    }
}
