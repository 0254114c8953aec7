//! Encodes a question for this wire.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reader::{CALL, SIGNATURE};
use crate::query::{CallIds, HistoryEntry, InputPart, ModelQuery, PastCall, data_url, object};

/// The body of a request. The members that change least come first, for the vendor's cache.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Value::is_null")]
    generation_config: Value,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<SignedPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignedPart<'a> {
    #[serde(flatten)]
    part: PartData<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartData<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    file_uri: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    args: Cow<'a, RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    name: &'a str,
    response: FunctionOutput<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum FunctionOutput<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// Encodes the question as JSON.
pub(super) fn body(question: &ModelQuery<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let has_tools = !question.tools.is_empty();
    let calls_nothing = has_tools && question.calls_nothing;
    serde_json::to_vec(&GeminiBody {
        system_instruction: (!question.instructions.is_empty()).then(|| GeminiContent {
            role: "",
            parts: vec![plain(PartData::Text(&question.instructions))],
        }),
        tools: has_tools.then(|| tools(question)),
        tool_config: calls_nothing.then(|| json!({ "functionCallingConfig": { "mode": "NONE" } })),
        contents: contents(question),
        generation_config: config(question),
    })
}

fn tools(question: &ModelQuery<'_>) -> Value {
    let tools = question.tools.iter().map(|it| {
        json!({ "name": it.name, "description": it.description, "parametersJsonSchema": it.schema })
    });
    json!([{ "functionDeclarations": Value::from_iter(tools) }])
}

fn config(question: &ModelQuery<'_>) -> Value {
    let mut config = json!({});
    if let Some(tokens_max) = question.output_tokens_max {
        config["maxOutputTokens"] = tokens_max.into();
    }
    if let Some(schema) = question.output_schema {
        config["responseMimeType"] = "application/json".into();
        config["responseJsonSchema"] = schema.clone();
    }
    if question.thinks() {
        config["thinkingConfig"] = thinking(question);
    }
    match config == json!({}) {
        true => Value::Null,
        false => config,
    }
}

/// Returns the thinking settings: a token budget for older models, a level for newer ones.
fn thinking(question: &ModelQuery<'_>) -> Value {
    let mut thinking = json!({ "includeThoughts": true });
    let effort = question.effort.unwrap_or_default();
    let (level, tokens) = match effort {
        "none" => ("minimal", 0),
        "minimal" => ("minimal", 512),
        "low" => ("low", 1024),
        "medium" => ("medium", 8192),
        "" => return thinking,
        _ => ("high", 24_576),
    };
    match question.model.starts_with("gemini-2") {
        true => thinking["thinkingBudget"] = tokens.into(),
        false => thinking["thinkingLevel"] = level.into(),
    }
    thinking
}

/// Encodes the history as contents.
fn contents<'a>(question: &'a ModelQuery<'_>) -> Vec<GeminiContent<'a>> {
    let mut contents = ContentsBuilder::default();
    let mut calls = CallIds::default();
    let signatures = signatures(&question.history);
    for entry in &question.history {
        match entry {
            HistoryEntry::User(parts) => contents.push_user(parts.iter().map(part)),
            HistoryEntry::Assistant { text, sealed } => {
                let signature = sealed.and_then(|it| it[SIGNATURE].as_str());
                contents.add("model", PartData::Text(text), signature);
            }
            // The signature goes with its call.
            HistoryEntry::Sealed(_) => {}
            HistoryEntry::Call {
                id,
                name,
                arguments,
                form,
            } => {
                let signature = signatures.get(id).copied();
                calls.add_call(id, name);
                let args = object(arguments, *form);
                contents.add(
                    "model",
                    PartData::FunctionCall(FunctionCall { name, args }),
                    signature,
                );
            }
            HistoryEntry::Output {
                call,
                text,
                images,
                failed,
            } => {
                let PastCall {
                    name, index: at, ..
                } = calls.take_call(call);
                let response = match failed {
                    true => FunctionOutput::Error(text),
                    false => FunctionOutput::Output(text),
                };
                contents.add_output(
                    at,
                    PartData::FunctionResponse(FunctionResponse { name, response }),
                );
                contents
                    .user_parts
                    .extend(images.iter().map(|url| image(url)));
            }
        }
    }
    contents.flush();
    contents.done
}

/// Returns the signatures of calls.
fn signatures<'a>(history: &[HistoryEntry<'a>]) -> HashMap<&'a str, &'a str> {
    let sealed = history.iter().filter_map(|entry| match entry {
        HistoryEntry::Sealed(it) => Some((it[CALL].as_str()?, it[SIGNATURE].as_str()?)),
        _ => None,
    });
    sealed.collect()
}

#[derive(Default)]
struct ContentsBuilder<'a> {
    done: Vec<GeminiContent<'a>>,
    /// Parts of the user that follow the outputs of tools, in a separate content.
    user_parts: Vec<PartData<'a>>,
    /// Outputs of tools with the positions of their calls: the wire matches them by order alone.
    outputs: Vec<(usize, PartData<'a>)>,
}

impl<'a> ContentsBuilder<'a> {
    fn add(&mut self, role: &'static str, part: PartData<'a>, thought_signature: Option<&'a str>) {
        if role == "model" {
            self.flush();
        }
        let part = SignedPart {
            part,
            thought_signature,
        };
        match self.done.last_mut().filter(|it| it.role == role) {
            Some(last) => last.parts.push(part),
            None => self.done.push(GeminiContent {
                role,
                parts: vec![part],
            }),
        }
    }

    fn add_output(&mut self, at: usize, part: PartData<'a>) {
        self.outputs.push((at, part));
    }

    fn push_user(&mut self, parts: impl Iterator<Item = PartData<'a>>) {
        match self.outputs.is_empty() {
            true => parts.for_each(|it| self.add("user", it, None)),
            false => self.user_parts.extend(parts),
        }
    }

    fn flush(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        outputs.sort_by_key(|(at, _)| *at);
        for (_, part) in outputs {
            self.add("user", part, None);
        }
        if !self.user_parts.is_empty() {
            let parts = self.user_parts.drain(..).map(plain).collect();
            let role = "user";
            self.done.push(GeminiContent { role, parts });
        }
    }
}

fn plain(part: PartData<'_>) -> SignedPart<'_> {
    SignedPart {
        part,
        thought_signature: None,
    }
}

fn part<'a>(part: &'a InputPart<'_>) -> PartData<'a> {
    match part {
        InputPart::Text(text) => PartData::Text(text),
        InputPart::Image { url, .. } => image(url),
    }
}

fn image(url: &str) -> PartData<'_> {
    match data_url(url) {
        Some((mime_type, data)) => PartData::InlineData(InlineData { mime_type, data }),
        None => PartData::FileData(FileData { file_uri: url }),
    }
}
