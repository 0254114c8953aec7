//! A question in this wire's words.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{CALL, SIGNATURE};
use crate::question::{Call, Calls, Part, Question, Told, data_url, object};

/// The body of a request. What changes least comes first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Value::is_null")]
    generation_config: Value,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<Sealed<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sealed<'a> {
    #[serde(flatten)]
    part: Said<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Said<'a> {
    Text(&'a str),
    InlineData(Inline<'a>),
    FileData(File<'a>),
    FunctionCall(Called<'a>),
    FunctionResponse(Response<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    file_uri: &'a str,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    args: Cow<'a, RawValue>,
}

#[derive(Serialize)]
struct Response<'a> {
    name: &'a str,
    response: Given<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Given<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// The question as bytes.
pub(super) fn body(question: &Question<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let has_tools = !question.tools.is_empty();
    let calls_nothing = has_tools && question.calls_nothing;
    serde_json::to_vec(&Body {
        system_instruction: (!question.instructions.is_empty()).then(|| Content {
            role: "",
            parts: vec![plain(Said::Text(&question.instructions))],
        }),
        tools: has_tools.then(|| tools(question)),
        tool_config: calls_nothing.then(|| json!({ "functionCallingConfig": { "mode": "NONE" } })),
        contents: contents(question),
        generation_config: config(question),
    })
}

fn tools(question: &Question<'_>) -> Value {
    let tools = question.tools.iter().map(|it| {
        json!({ "name": it.name, "description": it.description, "parametersJsonSchema": it.schema })
    });
    json!([{ "functionDeclarations": Value::from_iter(tools) }])
}

fn config(question: &Question<'_>) -> Value {
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
fn thinking(question: &Question<'_>) -> Value {
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
fn contents<'a>(question: &'a Question<'_>) -> Vec<Content<'a>> {
    let mut contents = Contents::default();
    let mut calls = Calls::default();
    let signatures = signatures(&question.history);
    for told in &question.history {
        match told {
            Told::User(parts) => contents.hear(parts.iter().map(part)),
            Told::Assistant { text, sealed } => {
                let signature = sealed.and_then(|it| it[SIGNATURE].as_str());
                contents.add("model", Said::Text(text), signature);
            }
            // It goes with the call that it belongs to.
            Told::Sealed(_) => {}
            Told::Call {
                id,
                name,
                arguments,
                form,
            } => {
                let signature = signatures.get(id).copied();
                calls.made(id, name);
                let args = object(arguments, *form);
                contents.add(
                    "model",
                    Said::FunctionCall(Called { name, args }),
                    signature,
                );
            }
            Told::Output {
                call,
                text,
                images,
                failed,
            } => {
                let Call { name, at, .. } = calls.answered(call);
                let response = match failed {
                    true => Given::Error(text),
                    false => Given::Output(text),
                };
                contents.give(at, Said::FunctionResponse(Response { name, response }));
                contents.after.extend(images.iter().map(|url| image(url)));
            }
        }
    }
    contents.settle();
    contents.done
}

/// What calls are sealed with.
fn signatures<'a>(history: &[Told<'a>]) -> HashMap<&'a str, &'a str> {
    let sealed = history.iter().filter_map(|told| match told {
        Told::Sealed(it) => Some((it[CALL].as_str()?, it[SIGNATURE].as_str()?)),
        _ => None,
    });
    sealed.collect()
}

/// Contents as they grow.
#[derive(Default)]
struct Contents<'a> {
    done: Vec<Content<'a>>,
    /// What the user says after what the tools gave, which stands alone.
    after: Vec<Said<'a>>,
    /// What the tools gave, by the places of the calls: the wire knows whose it is by that alone.
    given: Vec<(usize, Said<'a>)>,
}

impl<'a> Contents<'a> {
    fn add(&mut self, role: &'static str, part: Said<'a>, thought_signature: Option<&'a str>) {
        if role == "model" {
            self.settle();
        }
        let part = Sealed {
            part,
            thought_signature,
        };
        match self.done.last_mut().filter(|it| it.role == role) {
            Some(last) => last.parts.push(part),
            None => self.done.push(Content {
                role,
                parts: vec![part],
            }),
        }
    }

    fn give(&mut self, at: usize, part: Said<'a>) {
        self.given.push((at, part));
    }

    fn hear(&mut self, parts: impl Iterator<Item = Said<'a>>) {
        match self.given.is_empty() {
            true => parts.for_each(|it| self.add("user", it, None)),
            false => self.after.extend(parts),
        }
    }

    fn settle(&mut self) {
        let mut given = std::mem::take(&mut self.given);
        given.sort_by_key(|(at, _)| *at);
        for (_, part) in given {
            self.add("user", part, None);
        }
        if !self.after.is_empty() {
            let parts = self.after.drain(..).map(plain).collect();
            let role = "user";
            self.done.push(Content { role, parts });
        }
    }
}

fn plain(part: Said<'_>) -> Sealed<'_> {
    Sealed {
        part,
        thought_signature: None,
    }
}

fn part<'a>(part: &'a Part<'_>) -> Said<'a> {
    match part {
        Part::Text(text) => Said::Text(text),
        Part::Image { url, .. } => image(url),
    }
}

fn image(url: &str) -> Said<'_> {
    match data_url(url) {
        Some((mime_type, data)) => Said::InlineData(Inline { mime_type, data }),
        None => Said::FileData(File { file_uri: url }),
    }
}
