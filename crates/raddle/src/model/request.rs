//! A prompt in the words of the Responses wire.

use raddle_core::ports::{Prompt, UPDATE_GOAL};
use raddle_core::{Entry, Image, Input};
use raddle_model::Request;
use serde_json::{Value, json};

/// What is asked of a vendor.
pub(super) fn request(prompt: &Prompt, model: String, vendor: &str) -> Request {
    let settings = &prompt.settings;
    let mut input = Vec::new();
    if let Some(text) = &settings.developer_instructions {
        input.push(message("developer", "input_text", text));
    }
    input.extend(prompt.entries.iter().filter_map(|it| item(it, vendor)));
    Request {
        model,
        instructions: prompt.instructions.clone(),
        input,
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
        tools: prompt.has_goal.then(update_goal).into_iter().collect(),
        output_schema: prompt.output_schema.clone(),
        service_tier: settings.tier.clone(),
        prompt_cache_key: Some(prompt.thread.to_string()),
        ..Request::default()
    }
}

/// The tool with which the model says where the goal stands.
fn update_goal() -> Value {
    let status = json!({
        "type": "string", "enum": ["complete", "blocked"],
        "description": "complete: the goal is reached and nothing that it asks for is left. \
                        blocked: you cannot go on without help from the user.",
    });
    json!({
        "type": "function", "name": UPDATE_GOAL, "strict": true,
        "description": "Says where the goal of this thread stands. Call it only once it is reached, or cannot be reached without help.",
        "parameters": {
            "type": "object", "properties": { "status": status },
            "required": ["status"], "additionalProperties": false,
        },
    })
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

/// An entry in the wire's words; nothing for what this vendor cannot read.
fn item(entry: &Entry, vendor: &str) -> Option<Value> {
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
        Entry::Call(call) => json!({
            "type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments,
        }),
        Entry::Output { call, output } => json!({
            "type": "function_call_output", "call_id": call, "output": output.text,
        }),
    })
}

fn part(input: &Input) -> Value {
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    match input {
        Input::Text { text: it, .. } => text(it),
        Input::Image {
            image: Image::Url { url },
            ..
        } => json!({ "type": "input_image", "image_url": url }),
        Input::Image {
            image: Image::File { id },
            ..
        } => json!({ "type": "input_image", "file_id": id }),
        // The rest is named; whoever needs its content asks for it.
        Input::Image {
            image: Image::Path { path },
            ..
        } => text(&format!("[an image: {path}]")),
        Input::Image { .. } => text("[an image]"),
        Input::Audio { .. } => text("[a sound]"),
        Input::AudioFile { path } => text(&format!("[a sound: {path}]")),
        Input::Skill { name, path } => text(&format!("[the skill {name}: {path}]")),
        Input::Mention { name, path } => text(&format!("[{name}: {path}]")),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::Sealed;

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
            assert_eq!(item(&entry, "responses/a"), wanted, "{entry:?}");
        }
    }
}
