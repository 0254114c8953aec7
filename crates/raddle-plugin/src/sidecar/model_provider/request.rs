//! The params of a model call, in a form that belongs to no vendor.

use raddle_core::ports::{Prompt, ToolSpec};
use raddle_core::{ContextEntry, Image, Input, Output, Purpose};
use serde_json::{Value, json};

/// Returns the params of a call. docs/plugins-reference.md describes them.
pub(super) fn params(prompt: &Prompt, model: &str) -> Value {
    let settings = &prompt.settings;
    let instructions = match settings.developer_instructions.as_deref() {
        Some(developer) => format!("{}\n\n{developer}", prompt.instructions),
        None => prompt.instructions.clone(),
    };
    // A summary calls no tools.
    let (purpose, tools) = match prompt.purpose {
        Purpose::Answer => ("answer", prompt.tools.as_slice()),
        Purpose::Compact => ("summary", [].as_slice()),
    };
    let history: Vec<Value> = prompt.entries.iter().filter_map(|it| entry(it)).collect();
    json!({
        "model": model,
        "purpose": purpose,
        "instructions": instructions,
        "history": history,
        "tools": tools.iter().map(|it| tool(it)).collect::<Vec<_>>(),
        "effort": settings.effort,
        "output_schema": prompt.output_schema,
    })
}

fn tool(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "schema": spec.schema })
}

/// Converts an entry; `None` for reasoning, which only its vendor can read.
fn entry(entry: &ContextEntry) -> Option<Value> {
    let user = |content: Vec<Value>| json!({ "type": "user", "content": content });
    Some(match entry {
        ContextEntry::Summary(text) | ContextEntry::Note(text) | ContextEntry::Developer(text) => {
            user(vec![text_part(text)])
        }
        ContextEntry::User(input) => user(input.iter().map(part).collect()),
        ContextEntry::Assistant { text, .. } => json!({ "type": "assistant", "text": text }),
        ContextEntry::Reasoning(_) => return None,
        ContextEntry::Call(call) => json!({
            "type": "tool_call",
            "id": call.id,
            "name": call.tool,
            "arguments": call.arguments,
        }),
        ContextEntry::Output { call, output } => output_entry(call, output),
    })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn part(input: &Input) -> Value {
    match input {
        Input::Text { text, .. } => text_part(text),
        Input::Image {
            image: Image::Url { url },
            ..
        } => json!({ "type": "image", "url": url }),
        // Other input is only named; the model can request its content.
        Input::Image { image, .. } => text_part(&match image {
            Image::Path { path } => format!("[an image: {path}]"),
            Image::Url { .. } | Image::Blob(_) | Image::File { .. } => "[an image]".to_owned(),
        }),
        Input::Audio { .. } => text_part("[a sound]"),
        Input::AudioFile { path } => text_part(&format!("[a sound: {path}]")),
        Input::Skill { name, path } => text_part(&format!("[the skill {name}: {path}]")),
        Input::Mention { name, path } => text_part(&format!("[{name}: {path}]")),
    }
}

fn output_entry(call: &str, output: &Output) -> Value {
    let images = output.images.iter().filter_map(|it| match it {
        Image::Url { url } => Some(url),
        _ => None,
    });
    json!({
        "type": "tool_output",
        "id": call,
        "text": output.text,
        "images": images.collect::<Vec<_>>(),
        "failed": output.failed,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_core::{Settings, ThreadId, ToolCall};

    use super::*;

    #[test]
    fn a_prompt_belongs_to_no_vendor() {
        let call = ToolCall {
            id: "c1".to_owned(),
            tool: "exec_command".to_owned(),
            arguments: "{}".to_owned(),
            freeform: false,
            alone: false,
        };
        let entries = [
            ContextEntry::User(vec![Input::text("mend")]),
            ContextEntry::Assistant {
                text: "I look.".to_owned(),
                partial: false,
                sealed: None,
            },
            ContextEntry::Call(call),
            ContextEntry::Output {
                call: "c1".to_owned(),
                output: Output::failure("no"),
            },
        ];
        let mut prompt = Prompt {
            thread: ThreadId::mint(),
            settings: Settings {
                developer_instructions: Some("Be kind.".to_owned()),
                ..Settings::default()
            },
            purpose: Purpose::Answer,
            instructions: "Be brief.".to_owned(),
            attempt: 1,
            tools: vec![Arc::new(ToolSpec {
                name: "exec_command".to_owned(),
                description: "Runs.".to_owned(),
                schema: json!({ "type": "object" }),
                freeform: None,
            })],
            entries: entries.into_iter().map(Into::into).collect(),
            output_schema: None,
        };
        let expected = json!({
            "model": "m",
            "purpose": "answer",
            "instructions": "Be brief.\n\nBe kind.",
            "history": [
                { "type": "user", "content": [{ "type": "text", "text": "mend" }] },
                { "type": "assistant", "text": "I look." },
                { "type": "tool_call", "id": "c1", "name": "exec_command", "arguments": "{}" },
                { "type": "tool_output", "id": "c1", "text": "no", "images": [], "failed": true },
            ],
            "tools": [{
                "name": "exec_command", "description": "Runs.", "schema": { "type": "object" },
            }],
            "effort": null,
            "output_schema": null,
        });
        assert_eq!(params(&prompt, "m"), expected);
        prompt.purpose = Purpose::Compact;
        assert_eq!(params(&prompt, "m")["tools"], json!([]));
    }
}
