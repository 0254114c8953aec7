//! Encodes a question for this wire.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::query::{HistoryEntry, InputPart, ModelQuery, ToolDef, object};

/// The body of a request. The members that change least come first, for the vendor's cache.
#[derive(Serialize)]
struct ChatBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    stream: bool,
    stream_options: Value,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant(Assistant<'a>),
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Default, Serialize)]
struct Assistant<'a> {
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
    /// Sealed members that the vendor expects back.
    #[serde(flatten)]
    sealed: Map<String, Value>,
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCall<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    /// JSON, encoded as a string.
    arguments: Cow<'a, str>,
}

/// Text alone is a string: not every engine supports parts.
#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Image<'a> },
}

#[derive(Serialize)]
struct Image<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// Encodes the question as JSON.
pub(crate) fn body(question: &ModelQuery<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let has_tools = !question.tools.is_empty();
    let format = question.output_schema.map(|schema| {
        let schema = json!({ "name": "answer", "schema": schema, "strict": true });
        json!({ "type": "json_schema", "json_schema": schema })
    });
    serde_json::to_vec(&ChatBody {
        model: question.model,
        tools: question.tools.iter().map(chat_tool).collect(),
        tool_choice: (has_tools && question.calls_nothing).then_some("none"),
        parallel_tool_calls: has_tools.then_some(true),
        messages: messages(question),
        reasoning_effort: question.effort,
        response_format: format,
        service_tier: question.service_tier,
        max_tokens: question.output_tokens_max,
        stream: true,
        stream_options: json!({ "include_usage": true }),
    })
}

fn chat_tool<'a>(tool: &ToolDef<'a>) -> ChatTool<'a> {
    ChatTool {
        kind: "function",
        function: Function {
            name: tool.name,
            description: tool.description,
            parameters: tool.schema,
        },
    }
}

/// Encodes the history. Templates of many models require user and assistant to alternate, so
/// consecutive entries of one of them become one message.
fn messages<'a>(question: &'a ModelQuery<'_>) -> Vec<ChatMessage<'a>> {
    let mut messages = MessagesBuilder::default();
    if !question.instructions.is_empty() {
        let content = &question.instructions;
        messages.done.push(ChatMessage::System { content });
    }
    // Thinking belongs to the calls that it led to. After the user's next message it is of no use,
    // and some vendors reject it.
    let is_user = |it: &HistoryEntry<'_>| matches!(it, HistoryEntry::User(_));
    let last_user = question.history.iter().rposition(is_user);
    for (at, entry) in question.history.iter().enumerate() {
        match entry {
            HistoryEntry::User(parts) => messages.push_user(parts.iter().cloned()),
            HistoryEntry::Assistant { text, .. } => messages.assistant().add_text(text),
            HistoryEntry::Sealed(_) if last_user.is_some_and(|last| at < last) => {}
            HistoryEntry::Sealed(value) => messages.assistant().seal(value),
            HistoryEntry::Call {
                id,
                name,
                arguments,
                form,
            } => {
                let arguments = match object(arguments, *form) {
                    Cow::Borrowed(raw) => Cow::Borrowed(raw.get()),
                    Cow::Owned(raw) => Cow::Owned(String::from(Box::<str>::from(raw))),
                };
                messages.assistant().tool_calls.push(ChatToolCall {
                    id,
                    kind: "function",
                    function: FunctionCall { name, arguments },
                });
            }
            HistoryEntry::Output {
                call, text, images, ..
            } => messages.add_output(call, text, images),
        }
    }
    messages.finish()
}

#[derive(Default)]
struct MessagesBuilder<'a> {
    done: Vec<ChatMessage<'a>>,
    /// Parts of the next message of the user.
    user: Vec<InputPart<'a>>,
}

impl<'a> MessagesBuilder<'a> {
    fn push_user(&mut self, parts: impl Iterator<Item = InputPart<'a>>) {
        self.user.extend(parts);
    }

    fn assistant(&mut self) -> &mut Assistant<'a> {
        self.flush_user();
        if !matches!(self.done.last(), Some(ChatMessage::Assistant(_))) {
            self.done.push(ChatMessage::Assistant(Assistant::default()));
        }
        match self.done.last_mut() {
            Some(ChatMessage::Assistant(it)) => it,
            _ => unreachable!("it was pushed"),
        }
    }

    /// Adds the output of a call. A tool message holds text only; its images go into a message of
    /// the user, after the outputs of the other tools.
    fn add_output(&mut self, call: &'a str, text: &'a str, images: &[&'a str]) {
        let message = ChatMessage::Tool {
            tool_call_id: call,
            content: text,
        };
        self.done.push(message);
        if !images.is_empty() {
            let caption = InputPart::Text(format!("Images that the call {call} gave:").into());
            let images = images
                .iter()
                .map(|url| InputPart::Image { url, detail: None });
            self.user.extend([caption].into_iter().chain(images));
        }
    }

    fn flush_user(&mut self) {
        let parts = std::mem::take(&mut self.user);
        if parts.is_empty() {
            return;
        }
        let is_text = |part: &InputPart<'_>| matches!(part, InputPart::Text(_));
        let content = match parts.iter().all(is_text) {
            true => {
                let texts = parts.into_iter().map(|part| match part {
                    InputPart::Text(text) => text,
                    InputPart::Image { url, .. } => Cow::Borrowed(url),
                });
                ChatContent::Text(texts.collect::<Vec<_>>().join("\n\n"))
            }
            false => ChatContent::Parts(parts.into_iter().map(content_part).collect()),
        };
        self.done.push(ChatMessage::User { content });
    }

    fn finish(mut self) -> Vec<ChatMessage<'a>> {
        self.flush_user();
        // Thinking alone does not make a message.
        self.done.retain(|it| match it {
            ChatMessage::Assistant(it) => it.content.is_some() || !it.tool_calls.is_empty(),
            _ => true,
        });
        self.done
    }
}

fn content_part(part: InputPart<'_>) -> ContentPart<'_> {
    match part {
        InputPart::Text(text) => ContentPart::Text { text },
        InputPart::Image { url, detail } => ContentPart::ImageUrl {
            image_url: Image { url, detail },
        },
    }
}

impl<'a> Assistant<'a> {
    fn add_text(&mut self, text: &'a str) {
        match &mut self.content {
            Some(content) => {
                let content = content.to_mut();
                content.push_str("\n\n");
                content.push_str(text);
            }
            None => self.content = Some(Cow::Borrowed(text)),
        }
    }

    fn seal(&mut self, sealed: &Value) {
        for (name, value) in sealed.as_object().into_iter().flatten() {
            match (self.sealed.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
                (Some(Value::Array(parts)), Value::Array(more)) => {
                    parts.extend(more.iter().cloned());
                }
                _ => drop(self.sealed.insert(name.clone(), value.clone())),
            }
        }
    }
}
