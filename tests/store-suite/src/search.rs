//! Search finds the text of conversations, newest thread first.

use raddle_core::ports::{Journal, ListQuery, Pages, ReadError};
use raddle_core::{Event, RecordBody, Seq, ThreadId};

use crate::StoreMaker;
use crate::lists::{ids, query, threads};
use crate::records::{ThreadScript, forked, renamed};

suite!(search:
    threads_that_hold_a_text,
    texts_that_match_nothing,
    letters_that_are_everywhere,
    a_search_with_an_invalid_cursor_is_rejected,
);

/// Returns all threads that contain a text, page by page.
pub(crate) async fn pages_of(
    journal: &impl Pages,
    text: &str,
    mut query: ListQuery,
) -> Vec<ThreadId> {
    let mut matches = Vec::new();
    loop {
        let page = journal
            .search(text.to_owned(), query.clone())
            .await
            .unwrap();
        assert!(page.entries.len() <= query.limit);
        matches.extend(ids(&page));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return matches;
        }
    }
}

/// Searches once the index is up to date.
async fn check_search(
    maker: &impl StoreMaker,
    text: &str,
    query: ListQuery,
    expected: &[ThreadId],
) {
    maker.settle().await;
    let matches = pages_of(maker.store(), text, query.clone()).await;
    assert_eq!(matches, expected, "{text} {query:?}");
}

async fn threads_that_hold_a_text(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 3).await;
    scripts[0].now = 10_000;
    scripts[0].turn(journal, "t", "Where is the Ägäis?").await;
    scripts[1].now = 20_000;
    scripts[1].turn(journal, "t", "a needle in the hay").await;
    scripts[2].append(journal, vec![renamed("Needles")]).await;
    let [first, second, third] = [0, 1, 2].map(|at| scripts[at].thread);
    for (text, expected) in [
        ("needle", vec![second, third]),
        ("is the äg", vec![first]),
        ("in the hay", vec![second]),
        ("\"in\" the", vec![]),
        ("nothing of it", vec![]),
    ] {
        check_search(&maker, text, query(10), &expected).await;
    }
    journal.delete(second).await.unwrap();
    check_search(&maker, "needle", query(10), &[third]).await;
}

async fn texts_that_match_nothing(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 1).await;
    let long = "so on and ".repeat(30);
    let name = renamed(&format!("a\0b {long}"));
    scripts[0].append(journal, vec![name]).await;
    let matching = [scripts[0].thread];
    check_search(&maker, "so on", query(10), &matching).await;
    for (text, expected) in [
        // Too short to search for.
        ("so", &matching[..0]),
        ("", &matching[..0]),
        ("a\0b", &matching[..0]),
        // Longer than the limit of a search: later letters are ignored.
        (&format!("{}no", &long[..256]), &matching[..]),
        (&format!("{}no", &long[..250]), &matching[..0]),
        // Query operators are searched as text, though an index may have some.
        ("so* OR and", &matching[..0]),
        ("text : \"so on\"", &matching[..0]),
    ] {
        let page = journal.search(text.to_owned(), query(10)).await.unwrap();
        assert_eq!(ids(&page), expected, "{text:?}");
        assert_eq!(page.next, None);
    }
}

/// A text of common trigrams is searched in another way.
async fn letters_that_are_everywhere(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = threads(journal, 9).await;
    let renames: Vec<RecordBody> = (0..2_100).map(|_| renamed("a needle in the hay")).collect();
    scripts[4].append(journal, renames).await;
    for (at, name) in [
        (1, "needle hay"),
        (2, "some needle"),
        (3, "no such thing"),
        (5, "needle hay"),
        (7, "NEEDLE HAY, and more"),
        (8, "the hay"),
    ] {
        scripts[at].append(journal, vec![renamed(name)]).await;
    }
    scripts[7]
        .append(journal, vec![Event::Archived { principal: None }.into()])
        .await;
    // One fork shares the matching record, the other only those before it, and both are the newest.
    let early = fork(journal, &scripts[5], Seq(2), 90_000).await;
    let late = fork(journal, &scripts[5], scripts[5].head, 91_000).await;
    let id = |at: usize| scripts[at].thread;
    let cwd = |cwd: &str, limit| ListQuery {
        cwds: vec![cwd.to_owned()],
        ..query(limit)
    };
    let archived = |limit| ListQuery {
        archived: true,
        ..query(limit)
    };
    for limit in [1, 2, 3, 100] {
        for (text, query, expected) in [
            ("needle hay", query(limit), vec![late, id(5), id(1)]),
            (
                "needle",
                query(limit),
                vec![late, id(5), id(4), id(2), id(1)],
            ),
            ("hay", query(limit), vec![late, id(8), id(5), id(4), id(1)]),
            ("needle the", query(limit), vec![]),
            ("needle hay", archived(limit), vec![id(7)]),
            ("needle hay", cwd("/w1", limit), vec![id(1)]),
            ("needle", cwd("/w2", limit), vec![id(5), id(2)]),
            ("needle", cwd("/fork", limit), vec![late]),
            ("needle", cwd("/nowhere", limit), vec![]),
        ] {
            check_search(&maker, text, query, &expected).await;
        }
    }
    journal.delete(id(5)).await.unwrap();
    check_search(&maker, "needle hay", query(2), &[late, id(1)]).await;
    journal.delete(late).await.unwrap();
    check_search(&maker, "needle hay", query(2), &[id(1)]).await;
    journal.delete(early).await.unwrap();
}

async fn fork(journal: &impl Journal, from: &ThreadScript, at: Seq, now: i64) -> ThreadId {
    let mut fork = from.fork(journal, at).await;
    fork.now = now;
    let own = forked(fork.thread, from.thread, at, 0);
    fork.append(journal, vec![own]).await;
    fork.thread
}

async fn a_search_with_an_invalid_cursor_is_rejected(maker: impl StoreMaker) {
    let journal = maker.store();
    for text in ["needle", "no"] {
        let query = ListQuery {
            cursor: Some("x".to_owned()),
            ..query(1)
        };
        let result = journal.search(text.to_owned(), query).await;
        assert_eq!(result, Err(ReadError::BadCursor));
    }
}
