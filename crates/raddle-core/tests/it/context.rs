//! The model's context, where rule files cannot reach.

use raddle_core::{ContextEntry, SharedEntry};

/// Asserts that every call has one output before any other entry, and that no cut-off message is
/// last.
pub fn assert_well_formed(entries: &[SharedEntry]) {
    let mut open: Vec<&str> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match &**entry {
            ContextEntry::Call(call) => open.push(&call.id),
            ContextEntry::Output { call, .. } => {
                let index = open.iter().position(|it| it == call);
                let index =
                    index.unwrap_or_else(|| panic!("an output without a call: {entries:?}"));
                open.remove(index);
            }
            ContextEntry::User(_) | ContextEntry::Developer(_) | ContextEntry::Note(_) => {
                assert!(open.is_empty(), "input before an output: {entries:?}");
            }
            ContextEntry::Summary(_) => {
                let before = entries[..at].iter();
                let mut others = before.filter(|entry| !matches!(***entry, ContextEntry::Note(_)));
                assert_eq!(
                    others.next(),
                    None,
                    "only notes come before a summary: {entries:?}"
                );
            }
            // A vendor may put a message beside its calls.
            ContextEntry::Assistant { .. } | ContextEntry::Reasoning(_) => {}
        }
    }
    assert!(open.is_empty(), "calls without outputs: {entries:?}");
    if let Some(ContextEntry::Assistant { partial, .. }) = entries.last().map(|it| &**it) {
        assert!(
            !partial,
            "a message that was cut off stands last: {entries:?}"
        );
    }
}
