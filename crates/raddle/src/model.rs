//! Ties the agent to the models that the configuration names.

use std::collections::BTreeMap;

use raddle_core::ports::{Answer, Model, Prompt, Said, Waiting};
use raddle_core::{
    AgentMessage, Call, Entry, Failure, FailureKind, Image, Input, ItemBody, ItemId, ModelEnd,
    Part, Phase, Reasoning, Sealed, Timestamp, Usage,
};
use raddle_model::{CallError, Endpoint, Event, ItemKind, Request, Stream, Tokens, stream};
use raddle_server::{Provider, Providers};
use serde_json::{Value, json};

use crate::threads::now;

/// Whose sealed items these are.
const VENDOR: &str = "responses";

/// How long a call that broke off waits before it is made again.
const RETRY_MS: i64 = 1000;

/// The models of the configured providers.
#[derive(Debug)]
pub(crate) struct Configured {
    providers: Providers,
}

impl Configured {
    pub(crate) fn new(providers: Providers) -> Self {
        Self { providers }
    }
}

impl Model for Configured {
    fn call(&self, prompt: Prompt) -> Box<dyn Answer> {
        let state = State::Asked(self.providers.clone(), Box::new(prompt));
        Box::new(Answering {
            state,
            ids: BTreeMap::new(),
        })
    }
}

/// An answer on its way.
struct Answering {
    state: State,
    /// Our ids for the vendor's items: a vendor may use one again in its next answer.
    ids: BTreeMap<String, ItemId>,
}

enum State {
    Asked(Providers, Box<Prompt>),
    Streaming(Box<Stream>),
    Over,
}

impl Answer for Answering {
    fn next(&mut self) -> Waiting<'_, Said> {
        Box::pin(async move {
            match self.advance().await {
                Ok(said) => said,
                Err(error) => {
                    self.state = State::Over;
                    Said::Ended(ended(&error), None)
                }
            }
        })
    }
}

impl Answering {
    async fn advance(&mut self) -> Result<Said, CallFailed> {
        loop {
            match &mut self.state {
                State::Asked(providers, prompt) => {
                    let stream = begin(providers.clone(), prompt).await?;
                    self.state = State::Streaming(Box::new(stream));
                }
                State::Streaming(stream) => match stream.next().await? {
                    Some(event) => return Ok(said(event, &mut self.ids)),
                    None => self.state = State::Over,
                },
                State::Over => return Ok(Said::Ended(ModelEnd::Done {}, None)),
            }
        }
    }
}

/// Why a call could not be made, or broke off.
enum CallFailed {
    /// The configuration does not allow it.
    NotConfigured(String),
    /// The vendor, or the way to it.
    Call(CallError),
}

impl From<CallError> for CallFailed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

async fn begin(providers: Providers, prompt: &Prompt) -> Result<Stream, CallFailed> {
    let name = prompt.settings.provider.clone();
    let provider = tokio::task::spawn_blocking(move || providers.get(name.as_deref())).await;
    let provider = provider
        .map_err(|error| CallFailed::NotConfigured(error.to_string()))?
        .map_err(|error| CallFailed::NotConfigured(error.to_string()))?;
    let model = prompt.settings.model.clone().ok_or_else(|| {
        CallFailed::NotConfigured("no model is configured; set `model` in config.toml".to_owned())
    })?;
    let endpoint = endpoint(&provider)?;
    Ok(stream(&endpoint, &request(prompt, model)).await?)
}

fn endpoint(provider: &Provider) -> Result<Endpoint, CallFailed> {
    let mut endpoint: Endpoint =
        provider
            .base_url
            .parse()
            .map_err(|error: raddle_model::EndpointError| {
                CallFailed::NotConfigured(error.to_string())
            })?;
    if let Some(name) = &provider.env_key {
        let key = std::env::var(name).map_err(|_| {
            CallFailed::NotConfigured(format!("the environment variable {name} is not set"))
        })?;
        endpoint.key = Some(key);
    }
    Ok(endpoint)
}

fn request(prompt: &Prompt, model: String) -> Request {
    let settings = &prompt.settings;
    let mut input = Vec::new();
    if let Some(text) = &settings.developer_instructions {
        input.push(message("developer", "input_text", text));
    }
    input.extend(prompt.entries.iter().map(item));
    Request {
        model,
        instructions: prompt.instructions.clone(),
        input,
        effort: settings.effort.clone(),
        output_schema: prompt.output_schema.clone(),
    }
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

/// An entry in the wire's words.
fn item(entry: &Entry) -> Value {
    match entry {
        Entry::Summary(text) | Entry::Note(text) => message("user", "input_text", text),
        Entry::User(input) => {
            let content: Vec<Value> = input.iter().map(part).collect();
            json!({ "type": "message", "role": "user", "content": content })
        }
        Entry::Assistant { text, .. } => message("assistant", "output_text", text),
        Entry::Reasoning(sealed) => sealed.value.clone(),
        Entry::Call(call) => json!({
            "type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments,
        }),
        Entry::Output { call, output } => json!({
            "type": "function_call_output", "call_id": call, "output": output.text,
        }),
    }
}

fn part(input: &Input) -> Value {
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    match input {
        Input::Text { text: it, .. } => text(it),
        Input::Image {
            image: Image::Url { url },
            ..
        } => json!({ "type": "input_image", "image_url": url }),
        // The rest is named; whoever needs its content asks for it.
        Input::Image { image, .. } => text(&format!("[an image: {image:?}]")),
        Input::Audio { .. } => text("[a sound]"),
        Input::AudioFile { path } => text(&format!("[a sound: {path}]")),
        Input::Skill { name, path } => text(&format!("[the skill {name}: {path}]")),
        Input::Mention { name, path } => text(&format!("[{name}: {path}]")),
    }
}

/// What an event means to the agent.
fn said(event: Event, ids: &mut BTreeMap<String, ItemId>) -> Said {
    let mut ours = |id: String| ids.entry(id).or_insert_with(ItemId::mint).clone();
    match event {
        Event::Started { id, kind } => Said::Started(
            ours(id),
            match kind {
                ItemKind::Message => ItemBody::AgentMessage(AgentMessage::default()),
                ItemKind::Reasoning => ItemBody::Reasoning(Reasoning::default()),
            },
        ),
        Event::Text { id, text } => Said::Text(ours(id), Part::Text, text),
        Event::Summary { id, part, text } => Said::Text(ours(id), Part::Summary(part), text),
        Event::Message { id, text, phase } => {
            let phase = phase.as_deref().and_then(phase_of);
            let body = ItemBody::AgentMessage(AgentMessage { text, phase });
            Said::Completed(ours(id), body, None)
        }
        Event::Reasoning {
            id,
            summary,
            sealed,
        } => {
            let body = ItemBody::Reasoning(Reasoning {
                summary,
                content: Vec::new(),
            });
            let sealed = Sealed {
                vendor: VENDOR.to_owned(),
                value: sealed,
            };
            Said::Completed(ours(id), body, Some(sealed))
        }
        Event::Call {
            call_id,
            name,
            arguments,
        } => {
            let call = Call {
                id: call_id,
                tool: name,
                arguments,
                alone: false,
            };
            Said::Tool(ItemId::mint(), call)
        }
        Event::Completed(tokens) => Said::Ended(ModelEnd::Done {}, tokens.map(usage)),
    }
}

fn phase_of(phase: &str) -> Option<Phase> {
    match phase {
        "commentary" => Some(Phase::Commentary),
        "partial_answer" => Some(Phase::PartialAnswer),
        "final_answer" => Some(Phase::FinalAnswer),
        _ => None,
    }
}

fn usage(tokens: Tokens) -> Usage {
    Usage {
        input: tokens.input,
        cached: tokens.cached,
        cache_written: 0,
        output: tokens.output,
        reasoning: tokens.reasoning,
    }
}

fn ended(failed: &CallFailed) -> ModelEnd {
    let (message, kind, transient) = match failed {
        CallFailed::NotConfigured(what) => (what.clone(), FailureKind::BadRequest, false),
        CallFailed::Call(error) => (error.to_string(), kind(error), error.is_transient()),
    };
    let error = Failure {
        message,
        kind,
        details: None,
    };
    if transient {
        let Timestamp(now) = now();
        ModelEnd::Broke {
            error,
            retry_at: Timestamp(now + RETRY_MS),
        }
    } else {
        ModelEnd::Failed { error }
    }
}

fn kind(error: &CallError) -> FailureKind {
    match error {
        CallError::Connect { .. } => FailureKind::Connection { status: None },
        CallError::BrokeOff(_) | CallError::Malformed(_) => FailureKind::Stream { status: None },
        CallError::Refused { status, .. } => match status {
            400 => FailureKind::BadRequest,
            401 | 403 => FailureKind::Unauthorized,
            404 => FailureKind::ModelNotFound,
            429 => FailureKind::RateLimit,
            503 | 529 => FailureKind::Overloaded,
            500..=599 => FailureKind::VendorFailed,
            _ => FailureKind::Other,
        },
        CallError::Failed { code, .. } => match code.as_deref() {
            Some("context_length_exceeded") => FailureKind::ContextFull,
            Some("rate_limit_exceeded") => FailureKind::RateLimit,
            Some("insufficient_quota") => FailureKind::UsageLimit,
            _ => FailureKind::VendorFailed,
        },
    }
}
