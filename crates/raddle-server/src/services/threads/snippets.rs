//! Where in a thread a text was found.

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{PageQuery, ReadError, Summary};
use raddle_core::{Input, Item, ItemBody};

/// How many of a thread's newest items are looked at. A text that is only in older ones is found, and
/// shown by the thread's first words.
const ITEMS: usize = 32;

/// How many letters are shown before and after what was found.
const CONTEXT_CHARS: usize = 60;

/// The words around a text in a thread that holds it.
pub(crate) async fn snippet(
    threads: &Threads,
    thread: &Summary,
    text: &str,
) -> Result<String, AgentError> {
    let text = text.to_lowercase();
    let named = thread.name.iter().chain([&thread.preview]);
    if let Some(found) = named.filter_map(|words| around(words, &text)).next() {
        return Ok(found);
    }
    let query = PageQuery {
        limit: ITEMS,
        newest_first: true,
        cursor: None,
    };
    let items = match threads.items(thread.thread, None, query).await {
        Ok(page) => page.entries,
        // One that went meanwhile, or cannot be read, keeps nobody from the others.
        Err(AgentError::Read(ReadError::NotFound | ReadError::Corrupt { .. })) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut words = items.iter().flat_map(|it| words_of(&it.item));
    let found = words.find_map(|words| around(words, &text));
    Ok(found.unwrap_or_else(|| thread.preview.chars().take(2 * CONTEXT_CHARS).collect()))
}

fn words_of(item: &Item) -> Vec<&str> {
    match &item.body {
        ItemBody::UserMessage(message) => {
            let texts = message.input.iter().filter_map(|input| match input {
                Input::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            texts.collect()
        }
        ItemBody::AgentMessage(message) => vec![&message.text],
        ItemBody::Plan(plan) => vec![&plan.text],
        ItemBody::Command(command) => vec![&command.command],
        _ => Vec::new(),
    }
}

/// What stands around a text, in whatever case; nothing if it is not there.
fn around(words: &str, text: &str) -> Option<String> {
    let lower = words.to_lowercase();
    let before = lower[..lower.find(text)?].chars().count();
    let first = before.saturating_sub(CONTEXT_CHARS);
    let count = before - first + text.chars().count() + CONTEXT_CHARS;
    Some(words.chars().skip(first).take(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_around_a_text() {
        let long = "ä".repeat(100);
        for (words, text, expected) in [
            (
                "a Needle in hay",
                "needle",
                Some("a Needle in hay".to_owned()),
            ),
            ("hay", "needle", None),
            (
                &format!("{long}Needle{long}"),
                "needle",
                Some(format!("{0}Needle{0}", "ä".repeat(CONTEXT_CHARS))),
            ),
        ] {
            assert_eq!(around(words, text), expected);
        }
    }
}
