//! A prompt in the words of the Responses wire.

use std::collections::HashSet;

use raddle_core::ports::{Prompt, ToolSpec};
use raddle_core::{Entry, Image, Input, Output, Purpose};
use raddle_model::Request;
use serde_json::{Value, json};

/// What is asked of a vendor.
pub(super) fn request(prompt: &Prompt, model: String, vendor: &str) -> Request {
    let settings = &prompt.settings;
    let mut input = Vec::new();
    if let Some(text) = &settings.developer_instructions {
        input.push(message("developer", "input_text", text));
    }
    let mut freeform = HashSet::new();
    let said = prompt.entries.iter();
    input.extend(said.filter_map(|it| item(it, vendor, &mut freeform)));
    let tools: Vec<Value> = prompt.tools.iter().map(tool).collect();
    // Who condenses is told of the tools all the same: what is read before begins alike then.
    let condenses = prompt.purpose == Purpose::Compact && !tools.is_empty();
    Request {
        model,
        instructions: prompt.instructions.clone(),
        input,
        tool_choice: condenses.then(|| "none".into()),
        parallel_tool_calls: (!tools.is_empty()).then_some(true),
        tools,
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
        output_schema: prompt.output_schema.clone(),
        service_tier: settings.tier.clone(),
        prompt_cache_key: Some(prompt.thread.to_string()),
        ..Request::default()
    }
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

fn tool(it: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": it.name, "description": it.description, "strict": false, "parameters": it.schema,
    })
}

/// An entry in the wire's words; nothing for what this vendor cannot read.
///
/// `freeform`: the calls so far that were made with a text, and are answered in a form of their own.
fn item<'a>(entry: &'a Entry, vendor: &str, freeform: &mut HashSet<&'a str>) -> Option<Value> {
    Some(match entry {
        Entry::Summary(text) | Entry::Note(text) => message("user", "input_text", text),
        Entry::User(input) => {
            let content: Vec<Value> = input.iter().map(part).collect();
            json!({ "type": "message", "role": "user", "content": content })
        }
        Entry::Developer(text) => message("developer", "input_text", text),
        Entry::Assistant { text, .. } => message("assistant", "output_text", text),
        // The vendor stores nothing, so an item without its sealed part would be a name for nothing.
        Entry::Reasoning(sealed) => {
            let is_whole = sealed.value["encrypted_content"].is_string();
            return (sealed.vendor == vendor && is_whole).then(|| sealed.value.clone());
        }
        Entry::Call(call) if call.freeform => {
            freeform.insert(&call.id);
            json!({ "type": "custom_tool_call", "call_id": call.id, "name": call.tool, "input": call.arguments })
        }
        Entry::Call(call) => json!({
            "type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments,
        }),
        Entry::Output { call, output } => {
            let kind = match freeform.contains(call.as_str()) {
                true => "custom_tool_call_output",
                false => "function_call_output",
            };
            json!({ "type": kind, "call_id": call, "output": given(output) })
        }
    })
}

/// What a tool gave: a text, or parts where there are images.
fn given(output: &Output) -> Value {
    if output.images.is_empty() {
        return output.text.as_str().into();
    }
    let text = (!output.text.is_empty()).then(|| text(&output.text));
    let images = output.images.iter().map(|it| image(it, None));
    text.into_iter().chain(images).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

/// An image, or its name where nothing more is known of it.
fn image(image: &Image, detail: Option<&str>) -> Value {
    let mut part = match image {
        Image::Url { url } => json!({ "type": "input_image", "image_url": url }),
        Image::File { id } => json!({ "type": "input_image", "file_id": id }),
        Image::Path { path } => return text(&format!("[an image: {path}]")),
        Image::Blob(_) => return text("[an image]"),
    };
    if let Some(detail) = detail {
        part["detail"] = detail.into();
    }
    part
}

fn part(input: &Input) -> Value {
    match input {
        Input::Text { text: it, .. } => text(it),
        Input::Image {
            image: it, detail, ..
        } => image(it, detail.as_deref()),
        // The rest is named; whoever needs its content asks for it.
        Input::Audio { .. } => text("[a sound]"),
        Input::AudioFile { path } => text(&format!("[a sound: {path}]")),
        Input::Skill { name, path } => text(&format!("[the skill {name}: {path}]")),
        Input::Mention { name, path } => text(&format!("[{name}: {path}]")),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::{Call, Sealed, Settings};

    use super::*;

    #[test]
    fn sealed_thinking_goes_back_only_to_whoever_sealed_it() {
        let entry = |vendor: &str, value: Value| {
            let vendor = vendor.to_owned();
            Entry::Reasoning(Sealed { vendor, value })
        };
        let whole = json!({ "type": "reasoning", "id": "r", "encrypted_content": "x" });
        for (entry, wanted) in [
            (entry("responses/a", whole.clone()), Some(whole.clone())),
            (entry("responses/b", whole), None),
            (
                entry("responses/a", json!({ "type": "reasoning", "id": "r" })),
                None,
            ),
        ] {
            let found = item(&entry, "responses/a", &mut HashSet::new());
            assert_eq!(found, wanted, "{entry:?}");
        }
    }

    fn prompt(entries: Vec<Entry>) -> Prompt {
        let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        Prompt {
            thread: raddle_core::ThreadId::mint(),
            settings: Settings::default(),
            purpose: Purpose::Answer,
            instructions: "Be brief.".to_owned(),
            attempt: 1,
            tools: vec![ToolSpec {
                name: "ns__look".to_owned(),
                description: "Looks.".to_owned(),
                schema,
            }],
            entries,
            output_schema: None,
        }
    }

    fn call(id: &str, freeform: bool) -> Entry {
        Entry::Call(Call {
            id: id.to_owned(),
            tool: "ns__look".to_owned(),
            arguments: "{}".to_owned(),
            freeform,
            alone: false,
        })
    }

    fn output(id: &str, text: &str, images: &[&str]) -> Entry {
        let images = images.iter().map(|url| Image::Url {
            url: (*url).to_owned(),
        });
        Entry::Output {
            call: id.to_owned(),
            output: Output {
                images: images.collect(),
                ..Output::text(text)
            },
        }
    }

    #[test]
    fn tools_calls_and_what_they_gave() {
        let looks = Input::Image {
            image: Image::Url {
                url: "data:image/png;base64,AA==".to_owned(),
            },
            detail: Some("high".to_owned()),
            path: None,
        };
        let entries = vec![
            Entry::User(vec![Input::text("what is this"), looks]),
            call("c1", false),
            call("c2", true),
            output("c1", "a loom", &["data:image/gif;base64,AA=="]),
            output("c2", "no such tool", &[]),
            call("c3", false),
            output("c3", "", &["data:image/gif;base64,AA=="]),
        ];
        let asked = request(&prompt(entries), "m".to_owned(), "v");
        let wanted_tools = r#"[{"type":"function","name":"ns__look","description":"Looks.","strict":false,"parameters":{"type":"object","properties":{"b":{},"a":{}}}}]"#;
        let tools = serde_json::to_string(&asked.tools).expect("JSON");
        assert_eq!(tools, wanted_tools);
        assert_eq!(asked.parallel_tool_calls, Some(true));
        let gif = json!({"type": "input_image", "image_url": "data:image/gif;base64,AA=="});
        let wanted = json!([
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
        assert_eq!(Value::from(asked.input), wanted);
    }

    #[test]
    fn who_condenses_may_call_nothing() {
        let mut condenses = prompt(Vec::new());
        condenses.purpose = Purpose::Compact;
        let asked = request(&condenses, "m".to_owned(), "v");
        assert_eq!(
            (asked.tools.len(), asked.tool_choice),
            (1, Some("none".into()))
        );
        condenses.tools.clear();
        let asked = request(&condenses, "m".to_owned(), "v");
        assert_eq!((asked.tools.len(), asked.tool_choice), (0, None));
    }
}
