//! The model's context, where rule files cannot reach.

use raddle_core::{Entry, Piece};

/// Every call has one output before anything else is said, and nothing cut off stands last.
pub fn assert_well_formed(entries: &[Piece]) {
    let mut open: Vec<&str> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match &**entry {
            Entry::Call(call) => open.push(&call.id),
            Entry::Output { call, .. } => {
                let place = open.iter().position(|it| it == call);
                let place =
                    place.unwrap_or_else(|| panic!("an output without a call: {entries:?}"));
                open.remove(place);
            }
            Entry::User(_) | Entry::Developer(_) | Entry::Note(_) => {
                assert!(open.is_empty(), "input before an output: {entries:?}");
            }
            Entry::Summary(_) => {
                let before = entries[..at].iter();
                let mut others = before.filter(|entry| !matches!(***entry, Entry::Note(_)));
                assert_eq!(
                    others.next(),
                    None,
                    "only notes come before a summary: {entries:?}"
                );
            }
            // A vendor may put a message beside its calls.
            Entry::Assistant { .. } | Entry::Reasoning(_) => {}
        }
    }
    assert!(open.is_empty(), "calls without outputs: {entries:?}");
    if let Some(Entry::Assistant { partial, .. }) = entries.last().map(|it| &**it) {
        assert!(
            !partial,
            "a message that was cut off stands last: {entries:?}"
        );
    }
}
