//! Formats an item as text.

use raddle_core::{ChangeKind, FileChange, Image, Input, Item, ItemBody, ItemStatus};

/// An item as printed: a title line, and its text below.
pub(super) struct ItemText {
    pub(super) title: String,
    pub(super) text: String,
}

pub(super) fn lines(item: &Item) -> ItemText {
    let (mut title, mut text) = of_body(&item.body);
    if let Some(status) = status(item.status) {
        title = format!("{title} ({status})");
    }
    // The output for the model, if the item has no text of its own.
    if text.is_empty()
        && let Some(output) = &item.output
    {
        text.clone_from(&output.text);
    }
    ItemText { title, text }
}

fn of_body(body: &ItemBody) -> (String, String) {
    let plain = |title: &str, text: &str| (title.to_owned(), text.to_owned());
    match body {
        ItemBody::UserMessage(it) => {
            let parts: Vec<String> = it.input.iter().map(input).collect();
            plain("user", &parts.join("\n"))
        }
        ItemBody::HookPrompt(it) => {
            let pieces: Vec<&str> = it.pieces.iter().map(|piece| piece.text.as_str()).collect();
            plain("hook", &pieces.join("\n"))
        }
        ItemBody::AgentMessage(it) => plain("agent", &it.text),
        ItemBody::ToolOutput(it) => (format!("output of {}", it.name), it.output.to_string()),
        ItemBody::Plan(it) => plain("plan", &it.text),
        ItemBody::Reasoning(it) => {
            let shown = if it.summary.is_empty() {
                &it.content
            } else {
                &it.summary
            };
            plain("reasoning", &shown.join("\n"))
        }
        ItemBody::Command(it) => {
            let exit = it.exit_code.map(|code| format!("  → {code}"));
            let title = format!("$ {}{}", it.command, exit.unwrap_or_default());
            (title, it.printed.clone().unwrap_or_default())
        }
        ItemBody::Patch(it) => {
            let changes: Vec<String> = it.changes.iter().map(change).collect();
            plain("patch", &changes.join("\n"))
        }
        ItemBody::Mcp(it) => {
            let output = it
                .error
                .clone()
                .or(it.result.as_ref().map(ToString::to_string));
            let title = format!("{}/{} {}", it.server, it.tool, it.arguments);
            (title, output.unwrap_or_default())
        }
        ItemBody::ClientTool(it) => {
            let output = it.content.as_ref().map(ToString::to_string);
            (
                format!("{} {}", it.tool, it.arguments),
                output.unwrap_or_default(),
            )
        }
        ItemBody::Agents(it) => {
            let prompt = it.prompt.clone().unwrap_or_default();
            (format!("agents: {}", it.tool), prompt)
        }
        ItemBody::AgentNote(it) => (format!("agent {}: {}", it.path, it.kind), String::new()),
        ItemBody::WebSearch(it) => (format!("web search: {}", it.query), String::new()),
        ItemBody::ImageView(it) => (format!("looked at {}", it.path), String::new()),
        ItemBody::Sleep(it) => (format!("slept {} ms", it.duration_ms), String::new()),
        ItemBody::ImageMade(it) => {
            let where_to = it.image.as_ref().map(image).unwrap_or_default();
            plain("made an image", &where_to)
        }
        ItemBody::ReviewEntered(it) => plain("review begins", &it.text),
        ItemBody::ReviewLeft(it) => plain("review ends", &it.text),
        ItemBody::Compaction { .. } => plain("history compacted", ""),
        ItemBody::Tool(it) => plain(&it.name, ""),
    }
}

fn status(status: ItemStatus) -> Option<&'static str> {
    match status {
        ItemStatus::Completed => None,
        ItemStatus::InProgress => Some("open"),
        ItemStatus::Partial => Some("cut off"),
        ItemStatus::Failed => Some("failed"),
        ItemStatus::Declined => Some("declined"),
        ItemStatus::NotRun => Some("not run"),
        ItemStatus::Interrupted => Some("interrupted"),
        ItemStatus::Unknown => Some("outcome unknown"),
    }
}

fn input(input: &Input) -> String {
    match input {
        Input::Text { text, .. } => text.clone(),
        Input::Image {
            path: Some(path), ..
        } => format!("[image {path}]"),
        Input::Image { image: it, .. } => image(it),
        Input::Audio { url } => format!("[sound {url}]"),
        Input::AudioFile { path } => format!("[sound {path}]"),
        Input::Skill { name, .. } => format!("[skill {name}]"),
        Input::Mention { name, .. } => format!("[{name}]"),
    }
}

fn image(image: &Image) -> String {
    match image {
        Image::Blob(blob) => format!("[{}, {} bytes, {}]", blob.media, blob.bytes, blob.hash),
        // A URL can hold the whole image.
        Image::Url { url } => format!("[image {}]", url.chars().take(100).collect::<String>()),
        Image::Path { path } => format!("[image {path}]"),
        Image::File { id: file } => format!("[image {file}]"),
    }
}

fn change(change: &FileChange) -> String {
    let how = match &change.kind {
        ChangeKind::Add { .. } => "added".to_owned(),
        ChangeKind::Delete { .. } => "deleted".to_owned(),
        ChangeKind::Update { moved_to: None, .. } => "changed".to_owned(),
        ChangeKind::Update {
            moved_to: Some(to), ..
        } => format!("moved to {to}"),
    };
    format!("{} ({how})\n{}", change.path, change.diff)
}
