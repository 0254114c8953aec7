//! A question in this wire's words.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CALL, SIGNATURE};
use crate::query::{CallIds, HistoryEntry, InputPart, ModelQuery, PastCall, data_url, object};

/// The body of a request. What changes least comes first.
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

/// The question as bytes.
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
    if let Some(most) = question.output_tokens_max {
        config["maxOutputTokens"] = most.into();
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

/// Older models are told how many tokens they may think for, newer ones how hard.
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

/// What was said so far.
fn contents<'a>(question: &'a ModelQuery<'_>) -> Vec<GeminiContent<'a>> {
    let mut contents = ContentsBuilder::default();
    let mut calls = CallIds::default();
    let signatures = signatures(&question.history);
    for told in &question.history {
        match told {
            HistoryEntry::User(parts) => contents.push_user(parts.iter().map(part)),
            HistoryEntry::Assistant { text, sealed } => {
                let signature = sealed.and_then(|it| it[SIGNATURE].as_str());
                contents.add("model", PartData::Text(text), signature);
            }
            // It goes with the call that it belongs to.
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
                let PastCall { name, at, .. } = calls.take_call(call);
                let response = match failed {
                    true => FunctionOutput::Error(text),
                    false => FunctionOutput::Output(text),
                };
                contents.give(
                    at,
                    PartData::FunctionResponse(FunctionResponse { name, response }),
                );
                contents.after.extend(images.iter().map(|url| image(url)));
            }
        }
    }
    contents.settle();
    contents.done
}

/// What calls are sealed with.
fn signatures<'a>(history: &[HistoryEntry<'a>]) -> HashMap<&'a str, &'a str> {
    let sealed = history.iter().filter_map(|told| match told {
        HistoryEntry::Sealed(it) => Some((it[CALL].as_str()?, it[SIGNATURE].as_str()?)),
        _ => None,
    });
    sealed.collect()
}

/// Contents as they grow.
#[derive(Default)]
struct ContentsBuilder<'a> {
    done: Vec<GeminiContent<'a>>,
    /// What the user says after what the tools gave, which stands alone.
    after: Vec<PartData<'a>>,
    /// What the tools gave, by the places of the calls: the wire knows whose it is by that alone.
    outputs: Vec<(usize, PartData<'a>)>,
}

impl<'a> ContentsBuilder<'a> {
    fn add(&mut self, role: &'static str, part: PartData<'a>, thought_signature: Option<&'a str>) {
        if role == "model" {
            self.settle();
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

    fn give(&mut self, at: usize, part: PartData<'a>) {
        self.outputs.push((at, part));
    }

    fn push_user(&mut self, parts: impl Iterator<Item = PartData<'a>>) {
        match self.outputs.is_empty() {
            true => parts.for_each(|it| self.add("user", it, None)),
            false => self.after.extend(parts),
        }
    }

    fn settle(&mut self) {
        let mut given = std::mem::take(&mut self.outputs);
        given.sort_by_key(|(at, _)| *at);
        for (_, part) in given {
            self.add("user", part, None);
        }
        if !self.after.is_empty() {
            let parts = self.after.drain(..).map(plain).collect();
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
