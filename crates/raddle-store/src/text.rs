//! What of a record can be found by searching.

use raddle_core::{Event, Input, Item, ItemBody};

/// The words of an event that people look for: names, messages, plans and commands.
pub(crate) fn searchable(event: &Event) -> Option<String> {
    match event {
        Event::Renamed(it) => it.name.clone(),
        Event::InputAccepted(it) => of_item(&it.item),
        Event::ItemCompleted(it) => of_item(&it.item),
        _ => None,
    }
    .filter(|text| !text.is_empty())
}

fn of_item(item: &Item) -> Option<String> {
    match &item.body {
        ItemBody::UserMessage(message) => {
            let texts = message.input.iter().filter_map(|input| match input {
                Input::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        ItemBody::AgentMessage(message) => Some(message.text.clone()),
        ItemBody::Plan(plan) => Some(plan.text.clone()),
        ItemBody::Command(command) => Some(command.command.clone()),
        _ => None,
    }
}
