//! Snippets of a thread around a text that was found.

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{PageQuery, ReadError, Summary};
use raddle_core::{Input, Item, ItemBody};

/// The number of a thread's newest items to search. If the text is only in older ones, the snippet
/// is the thread's preview.
const ITEMS: usize = 32;

/// The number of letters before and after the match.
const CONTEXT_CHARS: usize = 60;

/// Returns the text around a match in a thread.
pub(crate) async fn snippet(
    threads: &Threads,
    thread: &Summary,
    text: &str,
) -> Result<String, AgentError> {
    let text = text.to_lowercase();
    let titles = thread.name.iter().chain([&thread.preview]);
    if let Some(found_snippet) = titles.filter_map(|title| around(title, &text)).next() {
        return Ok(found_snippet);
    }
    let query = PageQuery {
        limit: ITEMS,
        newest_first: true,
        cursor: None,
    };
    let items = match threads.items(thread.thread, None, query).await {
        Ok(page) => page.entries,
        // A thread that was deleted meanwhile, or is corrupt, must not fail the search.
        Err(AgentError::Read(ReadError::NotFound | ReadError::Corrupt { .. })) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut texts = items.iter().flat_map(|it| texts_of(&it.item));
    let found_snippet = texts.find_map(|text_of_item| around(text_of_item, &text));
    Ok(found_snippet.unwrap_or_else(|| thread.preview.chars().take(2 * CONTEXT_CHARS).collect()))
}

fn texts_of(item: &Item) -> Vec<&str> {
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

/// Returns the text around a match, ignoring case; none if there is no match.
fn around(haystack: &str, text: &str) -> Option<String> {
    let lower = haystack.to_lowercase();
    let before = lower[..lower.find(text)?].chars().count();
    let first = before.saturating_sub(CONTEXT_CHARS);
    let count = before - first + text.chars().count() + CONTEXT_CHARS;
    Some(haystack.chars().skip(first).take(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_around_a_text() {
        let long = "ä".repeat(100);
        for (haystack, text, expected) in [
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
            assert_eq!(around(haystack, text), expected);
        }
    }
}
