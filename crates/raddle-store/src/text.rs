//! Searchable text of a record.

use raddle_core::{Event, Input, Item, ItemBody};

/// Limit: text of one record that search indexes; beyond it, the rest is not found.
///
/// Indexing a very long text costs far more than storing it.
const BYTES_MAX: usize = 256 << 10;

/// Returns the searchable text of an event: names, messages, plans and commands, each truncated.
pub(crate) fn searchable(event: &Event) -> Option<String> {
    match event {
        Event::Renamed(it) => it.name.as_deref().map(beginning),
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
            Some(beginning(&texts.collect::<Vec<_>>().join("\n")))
        }
        ItemBody::AgentMessage(message) => Some(beginning(&message.text)),
        ItemBody::Plan(plan) => Some(beginning(&plan.text)),
        ItemBody::Command(command) => Some(beginning(&command.command)),
        _ => None,
    }
}

fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use raddle_core::Renamed;

    use super::*;

    #[test]
    fn only_the_beginning_of_a_very_long_text_can_be_found() {
        for (text, expected) in [
            ("loom".to_owned(), 4),
            ("x".repeat(BYTES_MAX), BYTES_MAX),
            ("x".repeat(BYTES_MAX + 1), BYTES_MAX),
            ("ä".repeat(BYTES_MAX), BYTES_MAX),
            (format!("x{}", "ä".repeat(BYTES_MAX)), BYTES_MAX - 1),
        ] {
            let (name, principal) = (Some(text), None);
            let result = searchable(&Event::Renamed(Renamed { name, principal }));
            assert_eq!(result.map(|it| it.len()), Some(expected));
        }
    }
}
