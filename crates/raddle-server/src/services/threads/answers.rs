//! What clients answer when a thread asks them something.

use std::sync::Arc;

use raddle_agent::{IMAGES_BYTES_MAX, ImageError, NewImage, Threads};
use raddle_core::{
    AnswerRequest, Ask, Command, Image, Output, RequestAnswer, RequestNumber, ThreadId,
    may_call_answer,
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

/// How many bytes all that is no image may have in the answer of a client's tool.
const TOOL_BYTES_MAX: usize = 1 << 20;

/// Hands an answer to the thread that asked. The first one counts; what answers nothing is only noted. An
/// error says that this client cannot answer, and counts when it was the last one who might.
pub(crate) fn take(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
    response: InboundResponse<'_>,
) {
    let may_answer = |id: &ThreadId| !session.is_observer() && session.threads().contains(id);
    let asked = named(&response.id).filter(|(id, _)| may_answer(id));
    let handle = asked.and_then(|(id, _)| rooms.threads.live(id));
    let (Some((id, request)), Some(handle)) = (asked, handle) else {
        session.counts.noise();
        tracing::info!(connection = session.number, id = %response.id, "an answer to nothing");
        return;
    };
    // Each counts for something, however short it is.
    let bytes = response.outcome.as_ref().map_or(0, |it| it.get().len());
    let share = u32::try_from(16 + bytes / 1024).unwrap_or(u32::MAX);
    let Ok(turn) = session.answers.clone().try_acquire_many_owned(share) else {
        session.counts.noise();
        tracing::warn!(connection = session.number, %request, "too many answers wait; one was dropped");
        return;
    };
    let said = response.outcome.map(RawValue::to_owned);
    let said = said.map_err(|error| error.message.into_owned());
    let (session, threads) = (session.clone(), rooms.threads.clone());
    tokio::spawn(async move {
        let _turn = turn;
        let ask = handle.inspect(move |thread| {
            let mut open = thread.requests();
            open.find_map(|(number, open)| (number == request).then(|| open.ask.clone()))
        });
        // Someone else was faster, or nobody waits for it any more.
        let Ok(Some(ask)) = ask.await else {
            return tracing::info!(connection = session.number, %request, "an answer too late");
        };
        if said.is_err() && handle.cannot(request, session_subscriber(&session)).await != Ok(true) {
            return tracing::info!(connection = session.number, %request, "a client cannot answer");
        }
        let answer = match answer(&ask, said) {
            RequestAnswer::Tool { output, content } => keep(&threads, id, output, content).await,
            answer => answer,
        };
        let command = Command::AnswerRequest(Box::new(AnswerRequest {
            request,
            by: who(&session),
            answer,
        }));
        let number = session.number;
        let taken = move |outcome: Result<_, _>| {
            if let Err(error) = outcome {
                tracing::info!(connection = number, %request, %error, "an answer was not taken");
            }
        };
        handle.send_command(command, taken).await;
    });
}

/// The thread and the number that the id of a request names.
pub(crate) fn named(id: &Id) -> Option<(ThreadId, RequestNumber)> {
    let Id::String(id) = id else {
        return None;
    };
    let (thread, number) = id.split_once(':')?;
    Some((thread.parse().ok()?, RequestNumber(number.parse().ok()?)))
}

/// Who answers, for the record.
fn who(session: &Session) -> String {
    let client = session.client().map(|client| client.name.as_str());
    let principal = session.peer.principal.as_deref();
    principal.or(client).unwrap_or_default().to_owned()
}

/// What an answer on the wire means. One that cannot be read, or an error, is a no in the words of the
/// question.
fn answer(ask: &Ask, said: Result<Box<RawValue>, String>) -> RequestAnswer {
    match ask {
        Ask::Command(_) => read(said).map_or_else(failed, command),
        Ask::Patch(_) => read(said).map_or_else(failed, patch),
        Ask::Tool(_) => read(said).map_or_else(failed, |said| may_call_answer(&said)),
        Ask::ClientTool {} => read(said).and_then(tool).unwrap_or_else(failed),
        Ask::Permissions(_) => {
            let granted: Result<wire::PermissionsRequestApprovalResponse, _> = read(said);
            let granted = granted.map(|it| serde_json::to_value(it).unwrap_or_default());
            RequestAnswer::Permissions {
                granted: granted.unwrap_or_else(|_| serde_json::json!({ "permissions": {} })),
            }
        }
        Ask::Questions(_) => {
            let said: Result<wire::ToolRequestUserInputResponse, _> = read(said);
            let answers = said.map(|it| it.answers).unwrap_or_default().into_iter();
            RequestAnswer::Answers {
                answers: answers
                    .map(|(question, it)| (question, it.answers))
                    .collect(),
            }
        }
        Ask::Elicitation(_) => RequestAnswer::Elicitation {
            body: read(said).unwrap_or_else(|_| serde_json::json!({ "action": "decline" })),
        },
    }
}

fn read<T: DeserializeOwned>(said: Result<Box<RawValue>, String>) -> Result<T, String> {
    let said = said?;
    serde_json::from_str(said.get()).map_err(|error| format!("the answer cannot be read: {error}"))
}

fn failed(message: String) -> RequestAnswer {
    RequestAnswer::Failed { message }
}

fn command(said: wire::CommandExecutionRequestApprovalResponse) -> RequestAnswer {
    use wire::CommandExecutionApprovalDecision as Decision;
    let rule = |it: Value| RequestAnswer::AcceptWithRule { rule: it };
    match &said.decision {
        Decision::Accept => RequestAnswer::Accept {},
        Decision::AcceptForSession => RequestAnswer::AcceptForSession {},
        Decision::ApplyNetworkPolicyAmendment(it)
            if it.network_policy_amendment.action != wire::NetworkPolicyRuleAction::Allow =>
        {
            RequestAnswer::Decline {}
        }
        Decision::AcceptWithExecpolicyAmendment(_) | Decision::ApplyNetworkPolicyAmendment(_) => {
            rule(serde_json::to_value(&said.decision).unwrap_or_default())
        }
        Decision::Decline => RequestAnswer::Decline {},
        Decision::Cancel => RequestAnswer::Cancel {},
        Decision::Unrecognized(_) => failed("the decision is not one that is known".to_owned()),
    }
}

fn patch(said: wire::FileChangeRequestApprovalResponse) -> RequestAnswer {
    use wire::FileChangeApprovalDecision as Decision;
    match said.decision {
        Decision::Accept => RequestAnswer::Accept {},
        Decision::AcceptForSession => RequestAnswer::AcceptForSession {},
        Decision::Decline => RequestAnswer::Decline {},
        Decision::Cancel => RequestAnswer::Cancel {},
        Decision::Unrecognized(_) => failed("the decision is not one that is known".to_owned()),
    }
}

fn tool(said: wire::DynamicToolCallResponse) -> Result<RequestAnswer, String> {
    use wire::DynamicToolCallOutputContentItem as Content;
    let mut output = Output {
        failed: !said.success,
        ..Output::default()
    };
    let mut bytes = 0;
    for content in &said.content_items {
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
            // No model here hears, and what is not known cannot be shown to one.
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
        content: serde_json::to_value(&said.content_items).unwrap_or_default(),
    })
}

/// Keeps the images that a tool gave. The record of the answer only names them.
async fn keep(
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
    let mut pictures = Vec::new();
    let mut bytes = 0;
    for image in &output.images {
        let Image::Url { url } = image else {
            continue;
        };
        match NewImage::of_url(url) {
            Ok(picture) => {
                bytes += picture.bytes();
                pictures.push(picture);
            }
            Err(error) => {
                return failed(format!("an image that the tool gave is not taken: {error}"));
            }
        }
    }
    if bytes > IMAGES_BYTES_MAX {
        let error = ImageError::TooLarge;
        return failed(format!(
            "the images that the tool gave are not taken: {error}"
        ));
    }
    output.images.clear();
    for picture in pictures {
        match threads.keep(id, picture).await {
            Ok(image) => output.images.push(image),
            Err(error) => return failed(format!("an image could not be kept: {error}")),
        }
    }
    let parts = content.as_array_mut().into_iter().flatten();
    let shown = parts.filter(|part| part["type"] == "inputImage");
    for (part, image) in shown.zip(&output.images) {
        if let Image::Blob(blob) = image {
            part["imageUrl"] = blob.url().into();
        }
    }
    RequestAnswer::Tool { output, content }
}
