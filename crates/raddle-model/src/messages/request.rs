//! A question in this wire's words.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::query::{CallIds, HistoryEntry, InputPart, ModelQuery, data_url, object};

/// This wire wants to be told how long an answer may be. All models of its vendor's can say so much.
const OUTPUT_TOKENS: u32 = 32_000;

/// What is said where the wire wants the user to begin, and nobody did.
const BEGINNING: &str = "Go on.";

/// The body of a request, in the order in which the vendor caches it.
#[derive(Serialize)]
struct MessagesBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<MessagesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<CachedBlock<'a>>,
    messages: Vec<RoleMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct MessagesTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
}

#[derive(Serialize)]
struct RoleMessage<'a> {
    role: &'static str,
    content: Vec<CachedBlock<'a>>,
}

/// A block, up to which the vendor may keep what it has read.
#[derive(Serialize)]
struct CachedBlock<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Sealed(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// The question as bytes.
pub(super) fn body(question: &ModelQuery<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let calls_nothing = question.calls_nothing && !question.tools.is_empty();
    let instructions = text(Cow::Borrowed(&*question.instructions));
    let mut messages = messages(question);
    // What is read now is read again with the next question; what the last one ended with is there already.
    let users = messages.iter_mut().rev().filter(|it| it.role == "user");
    let ends = users.take(2).filter_map(|it| it.content.last_mut());
    ends.for_each(|block| block.cache_control = kept());
    serde_json::to_vec(&MessagesBody {
        model: question.model,
        max_tokens: question.output_tokens_max.unwrap_or(OUTPUT_TOKENS),
        tools: question.tools.iter().map(described).collect(),
        tool_choice: calls_nothing.then(|| json!({ "type": "none" })),
        system: Vec::from_iter(instructions.map(|block| CachedBlock {
            block,
            cache_control: kept(),
        })),
        messages,
        thinking: question.thinks().then(|| thinking(question)),
        output_config: output(question),
        stream: true,
    })
}

fn kept() -> Option<Value> {
    Some(json!({ "type": "ephemeral" }))
}

fn described<'a>(tool: &crate::ToolDef<'a>) -> MessagesTool<'a> {
    MessagesTool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.schema,
    }
}

/// How much it thinks is the model's to say, by its effort.
fn thinking(question: &ModelQuery<'_>) -> Value {
    match question.summary {
        None | Some("none") => json!({ "type": "adaptive" }),
        Some(_) => json!({ "type": "adaptive", "display": "summarized" }),
    }
}

fn output<'a>(question: &ModelQuery<'a>) -> Option<OutputConfig<'a>> {
    let effort = match question.effort {
        Some("none") => None,
        Some("minimal") => Some("low"),
        effort => effort,
    };
    let format = question
        .output_schema
        .map(|schema| json!({ "type": "json_schema", "schema": schema }));
    (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format })
}

/// What was said so far; the sides take turns.
fn messages<'a>(question: &'a ModelQuery<'_>) -> Vec<RoleMessage<'a>> {
    let mut messages: Vec<RoleMessage<'a>> = Vec::new();
    let mut calls = CallIds::default();
    for told in &question.history {
        let (role, blocks) = match told {
            HistoryEntry::User(parts) => ("user", parts.iter().filter_map(part).collect()),
            HistoryEntry::Assistant { text: said, .. } => {
                ("assistant", Vec::from_iter(text(Cow::Borrowed(said))))
            }
            HistoryEntry::Sealed(value) if value.is_object() => {
                ("assistant", vec![Block::Sealed(value)])
            }
            HistoryEntry::Sealed(_) => continue,
            HistoryEntry::Call {
                id,
                name,
                arguments,
                form,
            } => {
                let call = Block::ToolUse {
                    id: calls.add_call(id, name),
                    name,
                    input: object(arguments, *form),
                };
                ("assistant", vec![call])
            }
            HistoryEntry::Output {
                call,
                text: said,
                images,
                failed,
            } => {
                let images = images.iter().map(|url| image(url));
                let result = Block::ToolResult {
                    tool_use_id: calls.take_call(call).id,
                    content: text(Cow::Borrowed(said))
                        .into_iter()
                        .chain(images)
                        .collect(),
                    is_error: *failed,
                };
                ("user", vec![result])
            }
        };
        let blocks = blocks.into_iter().map(|block| CachedBlock {
            block,
            cache_control: None,
        });
        match messages.last_mut().filter(|it| it.role == role) {
            Some(last) => last.content.extend(blocks),
            None => messages.push(RoleMessage {
                role,
                content: blocks.collect(),
            }),
        }
    }
    messages.retain(|it| !it.content.is_empty());
    if messages.first().is_none_or(|it| it.role != "user") {
        let block = Block::Text {
            text: BEGINNING.into(),
        };
        let begin = CachedBlock {
            block,
            cache_control: None,
        };
        messages.insert(
            0,
            RoleMessage {
                role: "user",
                content: vec![begin],
            },
        );
    }
    messages
}

/// A text. Empty ones are refused.
fn text(text: Cow<'_, str>) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

fn part<'a>(part: &'a InputPart<'_>) -> Option<Block<'a>> {
    match part {
        InputPart::Text(it) => text(Cow::Borrowed(it)),
        InputPart::Image { url, .. } => Some(image(url)),
    }
}

fn image(url: &str) -> Block<'_> {
    let source = match data_url(url) {
        Some((media_type, data)) => ImageSource::Base64 { media_type, data },
        None => ImageSource::Url { url },
    };
    Block::Image { source }
}
