//! Results of MCP tools, as the model and the user see them.

use std::time::Duration;

use data_encoding::BASE64;
use raddle_core::ports::ToolResult;
use raddle_core::{ItemBody, ItemStatus, McpCall, Output};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use super::call::CallError;

/// Limit: text of an MCP result that the model gets; beyond it, the middle is left out with a note.
const TEXT_BYTES_MAX: usize = 40_000;

/// Limit: result of an MCP call that an item contains; beyond it, the item contains the text that
/// the model got.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// Maximum nesting of a result in an item. A record with a deeper one could not be read again.
const DEPTH_MAX: usize = 64;

/// Limit: images of one MCP result; beyond it, the others are only named.
const IMAGES_MAX: usize = 8;

/// Failure of a call of a tool in another process.
#[derive(Debug)]
pub(crate) struct CallFailure {
    /// Description for the user and the model.
    pub(crate) text: String,
    /// Whether the user stopped the call.
    pub(crate) is_stopped: bool,
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        Self {
            text: error.to_string(),
            is_stopped: matches!(error, CallError::Stopped),
        }
    }
}

/// Builds the result of a tool from that of its call.
pub(crate) fn tool_result(
    mut call: McpCall,
    outcome: Result<CallToolResult, CallFailure>,
    took: Duration,
) -> ToolResult {
    call.duration_ms = i64::try_from(took.as_millis()).ok();
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            let status = match error.is_stopped {
                true => ItemStatus::Interrupted,
                false => ItemStatus::Failed,
            };
            let error = shortened(&error.text);
            let text = format!(
                "The call of {} on {} failed: {error}",
                call.tool, call.server
            );
            call.error = Some(error);
            return ToolResult::new(status, ItemBody::Mcp(call), Output::failure(text));
        }
    };
    let is_error = result.is_error == Some(true);
    let Content { text, pictures } = Content::of(&result);
    let shown = shortened(&text);
    call.result = Some(stored(&result, &shown));
    let status = match is_error {
        true => ItemStatus::Failed,
        false => ItemStatus::Completed,
    };
    let output = Output {
        text: shown.clone(),
        failed: is_error,
        ..Output::default()
    };
    let mut tool_result = ToolResult::new(status, ItemBody::Mcp(call), output);
    tool_result.pictures = pictures;
    tool_result.full = (shown.len() < text.len()).then_some(text);
    tool_result
}

/// Content of a result.
#[derive(Debug, Default)]
struct Content {
    text: String,
    pictures: Vec<Vec<u8>>,
}

impl Content {
    fn of(result: &CallToolResult) -> Self {
        let mut content = Self::default();
        for block in &result.content {
            content.add(block);
        }
        // A server that declares a schema need not repeat the data as text.
        if result.content.is_empty()
            && let Some(data) = &result.structured_content
        {
            content.line(&data.to_string());
        }
        content
    }

    fn add(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(it) => self.line(&it.text),
            ContentBlock::Image(it) => match BASE64.decode(it.data.as_bytes()) {
                Ok(bytes) if self.pictures.len() < IMAGES_MAX => self.pictures.push(bytes),
                Ok(_) => self.line("[An image is left out: there are too many.]"),
                Err(_) => self.line("[An image is left out: its data is not base64.]"),
            },
            ContentBlock::Audio(it) => {
                let line = format!("[Audio of the type {} is left out.]", it.mime_type);
                self.line(&line);
            }
            ContentBlock::Resource(it) => match &it.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.line(&format!("Content of {uri}:"));
                    self.line(text);
                }
                ResourceContents::BlobResourceContents { uri, blob, .. } => {
                    let bytes = blob.len() / 4 * 3;
                    self.line(&format!(
                        "[{uri} has about {bytes} bytes that are no text.]"
                    ));
                }
                _ => {}
            },
            ContentBlock::ResourceLink(it) => {
                self.line(&format!("[Resource {}: {}]", it.name, it.uri));
            }
            _ => self.line("[Content of an unknown kind is left out.]"),
        }
    }

    fn line(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

/// Returns a text without its middle, if it is too long.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let half = TEXT_BYTES_MAX / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left_out} bytes are left out …]\n{tail}")
}

/// Returns the result in the form in which the item contains it.
fn stored(result: &CallToolResult, shown: &str) -> Value {
    let whole = json!({
        "content": result.content,
        "structuredContent": result.structured_content,
        "_meta": result.meta,
    });
    match depth(&whole) <= DEPTH_MAX && whole.to_string().len() <= RESULT_BYTES_MAX {
        true => whole,
        false => json!({
            "content": [{"type": "text", "text": shown}],
            "structuredContent": null,
            "_meta": null,
        }),
    }
}

/// Returns the number of levels of a value. The parser has limited it already.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> McpCall {
        McpCall {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            arguments: json!({}),
            result: None,
            error: None,
            duration_ms: None,
        }
    }

    fn result(value: Value) -> ToolResult {
        let result = serde_json::from_value(value).expect("a result");
        tool_result(call(), Ok(result), Duration::from_millis(5))
    }

    #[test]
    fn content_becomes_text_and_images() {
        for (value, text, images) in [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
                "a\nb",
                0,
            ),
            (
                json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
                "",
                1,
            ),
            (
                json!({"content": [{"type": "image", "data": "?", "mimeType": "image/png"}]}),
                "[An image is left out: its data is not base64.]",
                0,
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "it"}}]}),
                "Content of x:1:\nit",
                0,
            ),
            (
                json!({"content": [{"type": "resource_link", "uri": "x:1", "name": "one"}]}),
                "[Resource one: x:1]",
                0,
            ),
            (
                json!({"content": [], "structuredContent": {"a": 1}}),
                "{\"a\":1}",
                0,
            ),
        ] {
            let result = result(value);
            assert_eq!(
                (result.output.text.as_str(), result.pictures.len()),
                (text, images)
            );
            assert_eq!(result.status, ItemStatus::Completed);
        }
    }

    #[test]
    fn large_and_deep_results_are_bounded() {
        let long = "ä".repeat(TEXT_BYTES_MAX);
        let result = result(json!({"content": [{"type": "text", "text": long}]}));
        assert!(result.output.text.len() < TEXT_BYTES_MAX + 100);
        assert_eq!(result.full.as_deref(), Some(long.as_str()));
        let mut deep = json!(1);
        for _ in 0..DEPTH_MAX {
            deep = json!([deep]);
        }
        let result = self::result(json!({"content": [], "structuredContent": deep}));
        let ItemBody::Mcp(call) = result.body else {
            panic!("another item");
        };
        assert!(call.result.is_some_and(|it| depth(&it) < 5));
    }

    #[test]
    fn a_failure_is_one_for_the_model_too() {
        let result = result(json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert!(result.output.failed && result.status == ItemStatus::Failed);
        let failed = tool_result(call(), Err(CallError::Stopped.into()), Duration::ZERO);
        assert_eq!(failed.status, ItemStatus::Interrupted);
    }
}
