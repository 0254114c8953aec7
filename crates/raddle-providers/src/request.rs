//! Builds a request of the Responses wire from a prompt.

mod item;

use std::collections::HashSet;
use std::sync::Arc;

use raddle_core::ports::{Prompt, ToolSpec};
use raddle_core::{ContextEntry, Purpose, SharedEntry};
use raddle_model::{CallError, ResponsesRequest};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use self::item::{CallOutput, Parts, RequestItem};

/// Builds the request for a vendor.
pub(crate) fn request(
    prompt: &Prompt,
    model: String,
    vendor: &Arc<str>,
) -> Result<ResponsesRequest, CallError> {
    let settings = &prompt.settings;
    let developer = settings.developer_instructions.as_deref();
    let input = input_items(developer, &prompt.entries, vendor);
    let malformed = |error: serde_json::Error| CallError::Malformed(error.to_string());
    let tools = prompt.tools.iter().map(|it| written(&RequestTool::of(it)));
    let tools: Vec<Arc<RawValue>> = tools.collect::<Result<_, _>>().map_err(malformed)?;
    // Compaction gets the tools too, so that the prefix of the request stays the same for caching.
    let compacts = prompt.purpose == Purpose::Compact && !tools.is_empty();
    Ok(ResponsesRequest {
        model,
        instructions: prompt.instructions.clone(),
        input: input.map_err(malformed)?,
        tool_choice: compacts.then(|| "none".into()),
        parallel_tool_calls: (!tools.is_empty()).then_some(true),
        tools,
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
        output_schema: prompt.output_schema.clone(),
        service_tier: settings.tier.clone(),
        prompt_cache_key: Some(prompt.thread.to_string()),
        ..ResponsesRequest::default()
    })
}

/// Converts the conversation so far.
fn input_items(
    developer: Option<&str>,
    entries: &[SharedEntry],
    vendor: &Arc<str>,
) -> Result<Vec<Arc<RawValue>>, serde_json::Error> {
    let mut items = Vec::with_capacity(entries.len() + 1);
    let developer = developer.map(|it| written(&RequestItem::developer(it)));
    items.extend(developer.transpose()?);
    // Outputs of freeform calls have a form of their own.
    let mut freeform = HashSet::new();
    for shared_entry in entries {
        if let ContextEntry::Call(call) = &**shared_entry
            && call.freeform
        {
            freeform.insert(call.id.as_str());
        }
        let item = |entry: &ContextEntry| {
            let item = item(entry, vendor, &freeform);
            item.map(|it| written(&it)).transpose()
        };
        items.extend(shared_entry.written(vendor, item)?);
    }
    Ok(items)
}

fn written(it: &impl Serialize) -> Result<Arc<RawValue>, serde_json::Error> {
    to_raw_value(it).map(Arc::from)
}

/// A tool of the wire.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestTool<'a> {
    Custom {
        name: &'a str,
        description: &'a str,
        format: Format<'a>,
    },
    Function {
        name: &'a str,
        description: &'a str,
        strict: bool,
        parameters: &'a Value,
    },
}

/// The format of a freeform tool's input.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    Grammar {
        syntax: &'a str,
        definition: &'a str,
    },
}

impl<'a> RequestTool<'a> {
    fn of(it: &'a ToolSpec) -> Self {
        match &it.freeform {
            Some(text) => Self::Custom {
                name: &it.name,
                description: &text.description,
                format: Format::Grammar {
                    syntax: "lark",
                    definition: &text.grammar,
                },
            },
            None => Self::Function {
                name: &it.name,
                description: &it.description,
                strict: false,
                parameters: &it.schema,
            },
        }
    }
}

/// Converts an entry; `None` if this vendor cannot read it.
///
/// `freeform`: the ids of the freeform calls so far.
fn item<'a>(
    entry: &'a ContextEntry,
    vendor: &str,
    freeform: &HashSet<&str>,
) -> Option<RequestItem<'a>> {
    Some(match entry {
        ContextEntry::Summary(text) | ContextEntry::Note(text) => {
            RequestItem::user(Parts::Text(text))
        }
        ContextEntry::User(input) => RequestItem::user(Parts::Input(input)),
        ContextEntry::Developer(text) => RequestItem::developer(text),
        ContextEntry::Assistant { text, sealed, .. } => {
            let own = sealed.as_ref().filter(|it| it.vendor == vendor);
            RequestItem::assistant(text, own.and_then(|it| it.value["phase"].as_str()))
        }
        // The vendor stores nothing, so an item without its sealed part would refer to nothing.
        ContextEntry::Reasoning(sealed) => {
            let is_whole = sealed.value["encrypted_content"].is_string();
            return (sealed.vendor == vendor && is_whole)
                .then_some(RequestItem::Sealed(&sealed.value));
        }
        ContextEntry::Call(call) if call.freeform => RequestItem::CustomToolCall {
            call_id: &call.id,
            name: &call.tool,
            input: &call.arguments,
        },
        ContextEntry::Call(call) => RequestItem::FunctionCall {
            call_id: &call.id,
            name: &call.tool,
            arguments: &call.arguments,
        },
        ContextEntry::Output { call, output } if freeform.contains(call.as_str()) => {
            RequestItem::CustomToolCallOutput {
                call_id: call,
                output: CallOutput::of(output),
            }
        }
        ContextEntry::Output { call, output } => RequestItem::FunctionCallOutput {
            call_id: call,
            output: CallOutput::of(output),
        },
    })
}

#[cfg(test)]
mod tests {
    use raddle_core::ports::FreeformSpec;
    use raddle_core::{Image, Input, Output, Sealed, Settings, ToolCall};
    use serde_json::json;

    use super::*;

    #[test]
    fn sealed_reasoning_is_returned_only_to_its_vendor() {
        let entry = |vendor: &str, value: Value| {
            let vendor = vendor.to_owned();
            ContextEntry::Reasoning(Sealed { vendor, value })
        };
        let whole = json!({ "type": "reasoning", "id": "r", "encrypted_content": "x" });
        for (entry, expected) in [
            (entry("responses/a", whole.clone()), Some(whole.clone())),
            (entry("responses/b", whole), None),
            (
                entry("responses/a", json!({ "type": "reasoning", "id": "r" })),
                None,
            ),
        ] {
            let actual = item(&entry, "responses/a", &HashSet::new());
            let actual = actual.map(|it| serde_json::to_value(it).expect("JSON"));
            assert_eq!(actual, expected, "{entry:?}");
        }
    }

    #[test]
    fn the_phase_of_an_answer_is_returned_only_to_its_vendor() {
        for (vendor, phase) in [
            ("responses/a", json!("commentary")),
            ("responses/b", Value::Null),
        ] {
            let entry = ContextEntry::Assistant {
                text: "A loom.".to_owned(),
                partial: false,
                sealed: Some(Sealed {
                    vendor: "responses/a".to_owned(),
                    value: json!({ "phase": "commentary" }),
                }),
            };
            let actual = item(&entry, vendor, &HashSet::new()).expect("an item");
            let actual = serde_json::to_value(actual).expect("JSON");
            assert_eq!(actual["phase"], phase, "{actual}");
        }
    }

    fn prompt(entries: Vec<ContextEntry>) -> Prompt {
        let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        Prompt {
            thread: raddle_core::ThreadId::mint(),
            settings: Settings::default(),
            purpose: Purpose::Answer,
            instructions: "Be brief.".to_owned(),
            attempt: 1,
            tools: vec![Arc::new(ToolSpec {
                name: "ns__look".to_owned(),
                description: "Looks.".to_owned(),
                schema,
                freeform: None,
            })],
            entries: entries.into_iter().map(Into::into).collect(),
            output_schema: None,
        }
    }

    fn call(id: &str, freeform: bool) -> ContextEntry {
        ContextEntry::Call(ToolCall {
            id: id.to_owned(),
            tool: "ns__look".to_owned(),
            arguments: "{}".to_owned(),
            freeform,
            alone: false,
        })
    }

    fn output(id: &str, text: &str, images: &[&str]) -> ContextEntry {
        let images = images.iter().map(|url| Image::Url {
            url: (*url).to_owned(),
        });
        ContextEntry::Output {
            call: id.to_owned(),
            output: Output {
                images: images.collect(),
                ..Output::text(text)
            },
        }
    }

    fn text(written: &[Arc<RawValue>]) -> String {
        let values: Vec<&RawValue> = written.iter().map(|it| &**it).collect();
        serde_json::to_string(&values).expect("JSON")
    }

    #[test]
    fn tools_calls_and_outputs_are_converted() {
        let image = Input::Image {
            image: Image::Url {
                url: "data:image/png;base64,AA==".to_owned(),
            },
            detail: Some("high".to_owned()),
            path: None,
        };
        let entries = vec![
            ContextEntry::User(vec![Input::text("what is this"), image]),
            call("c1", false),
            call("c2", true),
            output("c1", "a loom", &["data:image/gif;base64,AA=="]),
            output("c2", "no such tool", &[]),
            call("c3", false),
            output("c3", "", &["data:image/gif;base64,AA=="]),
        ];
        let request_body =
            request(&prompt(entries), "m".to_owned(), &"v".into()).expect("a request");
        let expected_tools = r#"[{"type":"function","name":"ns__look","description":"Looks.","strict":false,"parameters":{"type":"object","properties":{"b":{},"a":{}}}}]"#;
        let tools = text(&request_body.tools);
        assert_eq!(tools, expected_tools);
        assert_eq!(request_body.parallel_tool_calls, Some(true));
        let gif = json!({"type": "input_image", "image_url": "data:image/gif;base64,AA==", "detail": "auto"});
        let expected = json!([
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "what is this"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"},
            ]},
            {"type": "function_call", "call_id": "c1", "name": "ns__look", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "ns__look", "input": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a loom"}, gif]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "no such tool"},
            {"type": "function_call", "call_id": "c3", "name": "ns__look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c3", "output": [gif]},
        ]);
        assert_eq!(text(&request_body.input), expected.to_string());
    }

    #[test]
    fn a_freeform_tool_has_a_grammar() {
        let mut prompt = prompt(Vec::new());
        Arc::make_mut(&mut prompt.tools[0]).freeform = Some(FreeformSpec {
            description: "Looks at a text.".to_owned(),
            grammar: "start: /a/".to_owned(),
        });
        let request_body = request(&prompt, "m".to_owned(), &"v".into()).expect("a request");
        let expected = json!([{
            "type": "custom", "name": "ns__look", "description": "Looks at a text.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
        }]);
        assert_eq!(text(&request_body.tools), expected.to_string());
    }

    #[test]
    fn compaction_may_call_no_tools() {
        let mut compacts = prompt(Vec::new());
        compacts.purpose = Purpose::Compact;
        let request_body = request(&compacts, "m".to_owned(), &"v".into()).expect("a request");
        assert_eq!(
            (request_body.tools.len(), request_body.tool_choice),
            (1, Some("none".into()))
        );
        compacts.tools.clear();
        let request_body = request(&compacts, "m".to_owned(), &"v".into()).expect("a request");
        assert_eq!(
            (request_body.tools.len(), request_body.tool_choice),
            (0, None)
        );
    }
}
