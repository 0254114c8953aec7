//! Hashes of blobs, and the blobs that each event refers to.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use raddle_core::ports::AppendError;
use raddle_core::{
    Blob, Event, Image, InjectedItem, Input, Item, ItemBody, Output, RequestAnswer, Resolution,
};
use sha2::{Digest, Sha256};

/// SHA-256 of a blob's content, which is also its name.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Returns a hash as records spell it.
pub(crate) fn hex(hash: &Hash) -> String {
    HEXLOWER.encode(hash)
}

/// Parses a hash as records spell it. Returns `None` for malformed text.
pub(crate) fn parse(text: &str) -> Option<Hash> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Returns the error for an append that refers to a missing blob.
pub(crate) fn missing(name: &str) -> AppendError {
    AppendError::NoBlob(name.to_owned())
}

/// Returns the blobs that an event refers to. The match is exhaustive, so a new event cannot be
/// forgotten.
pub(crate) fn named(event: &Event) -> Vec<&Blob> {
    match event {
        Event::InputAccepted(it) => of_item(&it.item),
        Event::ItemStarted(it) => of_item(&it.item),
        Event::ItemCompleted(it) => of_item(&it.item),
        Event::ItemsInjected(it) => it.items.iter().flat_map(of_injected).collect(),
        Event::InputQueued(it) => it.input.iter().filter_map(of_input).collect(),
        Event::DiffUpdated(it) => it.full.iter().collect(),
        Event::RequestResolved(it) => of_resolution(&it.resolution),
        Event::ThreadStarted { .. }
        | Event::Owned { .. }
        | Event::Briefed { .. }
        | Event::Reserved { .. }
        | Event::Released { .. }
        | Event::Forked { .. }
        | Event::Reverted { .. }
        | Event::SettingsChanged { .. }
        | Event::Renamed { .. }
        | Event::MetadataChanged { .. }
        | Event::GoalSet { .. }
        | Event::GoalCleared { .. }
        | Event::InputUnqueued { .. }
        | Event::QueueReordered { .. }
        | Event::Archived { .. }
        | Event::Unarchived { .. }
        | Event::Deleted { .. }
        | Event::TurnStarted { .. }
        | Event::ModelCalled { .. }
        | Event::ModelEnded { .. }
        | Event::ModelUsed { .. }
        | Event::ItemSaved { .. }
        | Event::ToolStarted { .. }
        | Event::RequestOpened { .. }
        | Event::PlanUpdated { .. }
        | Event::Warned { .. }
        | Event::InterruptAccepted { .. }
        | Event::TurnEnded { .. }
        | Event::Compacted { .. }
        | Event::Remembered { .. } => Vec::new(),
    }
}

fn of_resolution(resolution: &Resolution) -> Vec<&Blob> {
    match resolution {
        Resolution::Answered { answer, .. } => match &**answer {
            RequestAnswer::Tool { output, .. } => of_output(output),
            RequestAnswer::Accept { .. }
            | RequestAnswer::AcceptForSession { .. }
            | RequestAnswer::AcceptWithRule { .. }
            | RequestAnswer::AcceptHunks { .. }
            | RequestAnswer::Decline { .. }
            | RequestAnswer::Cancel { .. }
            | RequestAnswer::Permissions { .. }
            | RequestAnswer::Answers { .. }
            | RequestAnswer::Elicitation { .. }
            | RequestAnswer::Failed { .. } => Vec::new(),
        },
        Resolution::Expired { .. } | Resolution::Withdrawn { .. } => Vec::new(),
    }
}

fn of_injected(item: &InjectedItem) -> Vec<&Blob> {
    match item {
        InjectedItem::User { input } => input.iter().filter_map(of_input).collect(),
        InjectedItem::Output { output, .. } => of_output(output),
        InjectedItem::Developer { .. }
        | InjectedItem::Note { .. }
        | InjectedItem::Assistant { .. }
        | InjectedItem::Call { .. } => Vec::new(),
    }
}

fn of_output(output: &Output) -> Vec<&Blob> {
    let images = output.images.iter().filter_map(Image::blob);
    images.chain(&output.full).collect()
}

fn of_item(item: &Item) -> Vec<&Blob> {
    let mut blobs: Vec<&Blob> = item.output.iter().flat_map(of_output).collect();
    match &item.body {
        ItemBody::UserMessage(message) => {
            blobs.extend(message.input.iter().filter_map(of_input));
        }
        ItemBody::ImageMade(made) => blobs.extend(made.image.iter().filter_map(Image::blob)),
        ItemBody::HookPrompt { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::ToolOutput { .. }
        | ItemBody::Plan { .. }
        | ItemBody::Reasoning { .. }
        | ItemBody::Command { .. }
        | ItemBody::Patch { .. }
        | ItemBody::Mcp { .. }
        | ItemBody::ClientTool { .. }
        | ItemBody::Agents { .. }
        | ItemBody::AgentNote { .. }
        | ItemBody::WebSearch { .. }
        | ItemBody::ImageView { .. }
        | ItemBody::Sleep { .. }
        | ItemBody::ReviewEntered { .. }
        | ItemBody::ReviewLeft { .. }
        | ItemBody::Compaction { .. }
        | ItemBody::Tool { .. } => {}
    }
    blobs
}

fn of_input(input: &Input) -> Option<&Blob> {
    match input {
        Input::Image { image, .. } => image.blob(),
        Input::Text { .. }
        | Input::Audio { .. }
        | Input::AudioFile { .. }
        | Input::Skill { .. }
        | Input::Mention { .. } => None,
    }
}
