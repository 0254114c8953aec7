//! Builds the query for the wires other than Responses, from a prompt.

use std::borrow::Cow;

use raddle_config::Provider;
use raddle_core::ports::{Prompt, ToolSpec};
use raddle_core::{ContextEntry, Image, Input, Output, Purpose, Sealed};
use raddle_model::{CallForm, HistoryEntry, InputPart, ModelQuery, ToolDef};
use serde_json::Value;

/// Builds the query for a vendor.
pub(crate) fn question<'a>(
    prompt: &'a Prompt,
    provider: &Provider,
    model: &'a str,
    vendor: &str,
) -> ModelQuery<'a> {
    let settings = &prompt.settings;
    // These wires accept developer instructions only at the very beginning.
    let instructions = match settings.developer_instructions.as_deref() {
        Some(developer) => Cow::Owned(format!("{}\n\n{developer}", prompt.instructions)),
        None => Cow::Borrowed(prompt.instructions.as_str()),
    };
    let entries = prompt.entries.iter();
    ModelQuery {
        model,
        instructions,
        history: entries.filter_map(|it| history_entry(it, vendor)).collect(),
        tools: prompt.tools.iter().map(|it| tool(it)).collect(),
        calls_nothing: prompt.purpose == Purpose::Compact,
        effort: settings.effort.as_deref(),
        summary: settings.summary.as_deref(),
        output_schema: prompt.output_schema.as_ref(),
        service_tier: settings.tier.as_deref(),
        output_tokens_max: provider.output_tokens_max,
    }
}

fn tool(it: &ToolSpec) -> ToolDef<'_> {
    ToolDef {
        name: &it.name,
        description: &it.description,
        schema: &it.schema,
    }
}

/// Converts an entry; `None` if this vendor cannot read it.
fn history_entry<'a>(entry: &'a ContextEntry, vendor: &str) -> Option<HistoryEntry<'a>> {
    Some(match entry {
        ContextEntry::Summary(text) | ContextEntry::Note(text) | ContextEntry::Developer(text) => {
            HistoryEntry::User(vec![InputPart::Text(text.into())])
        }
        ContextEntry::User(input) => HistoryEntry::User(input.iter().map(part).collect()),
        ContextEntry::Assistant { text, sealed, .. } => HistoryEntry::Assistant {
            text,
            sealed: sealed.as_ref().and_then(|it| unseal(it, vendor)),
        },
        ContextEntry::Reasoning(sealed) => return unseal(sealed, vendor).map(HistoryEntry::Sealed),
        ContextEntry::Call(call) => HistoryEntry::Call {
            id: &call.id,
            name: &call.tool,
            arguments: &call.arguments,
            form: match call.freeform {
                true => CallForm::Freeform,
                false => CallForm::Function,
            },
        },
        ContextEntry::Output { call, output } => output_entry(call, output),
    })
}

/// Returns the sealed value to the vendor that sealed it.
fn unseal<'a>(sealed: &'a Sealed, vendor: &str) -> Option<&'a Value> {
    (sealed.vendor == vendor).then_some(&sealed.value)
}

fn part(input: &Input) -> InputPart<'_> {
    match input {
        Input::Text { text, .. } => InputPart::Text(text.into()),
        Input::Image { image, detail, .. } => match image {
            Image::Url { url } => InputPart::Image {
                url,
                detail: detail.as_deref(),
            },
            image => InputPart::Text(named(image).into()),
        },
        // Other input is only named; the model can request its content.
        Input::Audio { .. } => InputPart::Text("[a sound]".into()),
        Input::AudioFile { path } => InputPart::Text(format!("[a sound: {path}]").into()),
        Input::Skill { name, path } => {
            InputPart::Text(format!("[the skill {name}: {path}]").into())
        }
        Input::Mention { name, path } => InputPart::Text(format!("[{name}: {path}]").into()),
    }
}

/// A placeholder for an image. A file stored at one vendor is unknown to the others.
fn named(image: &Image) -> String {
    match image {
        Image::Path { path } => format!("[an image: {path}]"),
        Image::Url { .. } | Image::Blob(_) | Image::File { .. } => "[an image]".to_owned(),
    }
}

fn output_entry<'a>(call: &'a str, output: &'a Output) -> HistoryEntry<'a> {
    let images = output.images.iter().filter_map(|it| match it {
        Image::Url { url } => Some(url.as_str()),
        _ => None,
    });
    HistoryEntry::Output {
        call,
        text: &output.text,
        images: images.collect(),
        failed: output.failed,
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::{Settings, ToolCall};
    use serde_json::json;

    use super::*;

    #[test]
    fn history_is_converted_for_another_vendor() {
        let sealed = |vendor: &str| Sealed {
            vendor: vendor.to_owned(),
            value: json!({ "reasoning": "hm" }),
        };
        let assistant = |vendor: &str| ContextEntry::Assistant {
            text: "I look.".to_owned(),
            partial: false,
            sealed: Some(sealed(vendor)),
        };
        let image = Input::Image {
            image: Image::File {
                id: "f1".to_owned(),
            },
            detail: None,
            path: None,
        };
        let call = ToolCall {
            id: "c1".to_owned(),
            tool: "patch".to_owned(),
            arguments: "*** Begin".to_owned(),
            freeform: true,
            alone: false,
        };
        let entries = vec![
            ContextEntry::Developer("rules".to_owned()),
            ContextEntry::User(vec![Input::text("mend"), image]),
            ContextEntry::Reasoning(sealed("chat/a")),
            ContextEntry::Reasoning(sealed("chat/b")),
            ContextEntry::Reasoning(sealed("responses/a")),
            assistant("chat/a"),
            assistant("gemini/a"),
            ContextEntry::Call(call),
            ContextEntry::Output {
                call: "c1".to_owned(),
                output: Output::failure("no"),
            },
        ];
        let settings = Settings {
            developer_instructions: Some("Be kind.".to_owned()),
            ..Settings::default()
        };
        let prompt = Prompt {
            thread: raddle_core::ThreadId::mint(),
            settings,
            purpose: Purpose::Answer,
            instructions: "Be brief.".to_owned(),
            attempt: 1,
            tools: Vec::new(),
            entries: entries.into_iter().map(Into::into).collect(),
            output_schema: None,
        };
        let provider = Provider {
            output_tokens_max: Some(9),
            ..Provider::default()
        };
        let query = question(&prompt, &provider, "m", "chat/a");
        assert_eq!(query.output_tokens_max, Some(9));
        assert_eq!(query.instructions, "Be brief.\n\nBe kind.");
        let text = |it: &'static str| InputPart::Text(it.into());
        let sealed = json!({ "reasoning": "hm" });
        let expected = [
            HistoryEntry::User(vec![text("rules")]),
            HistoryEntry::User(vec![text("mend"), text("[an image]")]),
            HistoryEntry::Sealed(&sealed),
            HistoryEntry::Assistant {
                text: "I look.",
                sealed: Some(&sealed),
            },
            HistoryEntry::Assistant {
                text: "I look.",
                sealed: None,
            },
            HistoryEntry::Call {
                id: "c1",
                name: "patch",
                arguments: "*** Begin",
                form: CallForm::Freeform,
            },
            HistoryEntry::Output {
                call: "c1",
                text: "no",
                images: Vec::new(),
                failed: true,
            },
        ];
        assert_eq!(query.history, expected);
    }
}
