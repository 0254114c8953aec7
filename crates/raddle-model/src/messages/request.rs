//! Encodes a question for this wire.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::query::{CallIds, HistoryEntry, InputPart, ModelQuery, data_url, object};

/// Default limit of an answer, which this wire requires. All models of its vendor support so many
/// tokens.
const OUTPUT_TOKENS: u32 = 32_000;

/// The first message of the user, which the wire requires, where the history has none.
const FIRST_USER_TEXT: &str = "Go on.";

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

/// A block that may end a prefix in the vendor's cache.
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

/// Encodes the question as JSON.
pub(super) fn body(question: &ModelQuery<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let calls_nothing = question.calls_nothing && !question.tools.is_empty();
    let instructions = text(Cow::Borrowed(&*question.instructions));
    let mut messages = messages(question);
    // The next question repeats this prefix; the end of the previous question is in the cache
    // already.
    let users = messages.iter_mut().rev().filter(|it| it.role == "user");
    let ends = users.take(2).filter_map(|it| it.content.last_mut());
    ends.for_each(|block| block.cache_control = cache_control());
    serde_json::to_vec(&MessagesBody {
        model: question.model,
        max_tokens: question.output_tokens_max.unwrap_or(OUTPUT_TOKENS),
        tools: question.tools.iter().map(messages_tool).collect(),
        tool_choice: calls_nothing.then(|| json!({ "type": "none" })),
        system: Vec::from_iter(instructions.map(|block| CachedBlock {
            block,
            cache_control: cache_control(),
        })),
        messages,
        thinking: question.thinks().then(|| thinking(question)),
        output_config: output(question),
        stream: true,
    })
}

fn cache_control() -> Option<Value> {
    Some(json!({ "type": "ephemeral" }))
}

fn messages_tool<'a>(tool: &crate::ToolDef<'a>) -> MessagesTool<'a> {
    MessagesTool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.schema,
    }
}

/// Returns the thinking settings. The model decides how much it thinks, by its effort.
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

/// Encodes the history; the roles alternate.
fn messages<'a>(question: &'a ModelQuery<'_>) -> Vec<RoleMessage<'a>> {
    let mut messages: Vec<RoleMessage<'a>> = Vec::new();
    let mut calls = CallIds::default();
    for entry in &question.history {
        let (role, blocks) = match entry {
            HistoryEntry::User(parts) => ("user", parts.iter().filter_map(part).collect()),
            HistoryEntry::Assistant { text: content, .. } => {
                ("assistant", Vec::from_iter(text(Cow::Borrowed(content))))
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
                text: content,
                images,
                failed,
            } => {
                let images = images.iter().map(|url| image(url));
                let result = Block::ToolResult {
                    tool_use_id: calls.take_call(call).id,
                    content: text(Cow::Borrowed(content))
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
            text: FIRST_USER_TEXT.into(),
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

/// Returns a text block; the vendor rejects empty ones.
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
