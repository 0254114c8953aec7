//! Pages of turns and items, without reverted ones.

use raddle_core::ports::{
    ItemEntry, Journal, Page, PageCursor, PageQuery, Pages, ReadError, TurnEntry,
};
use raddle_core::{Seq, ThreadId, TurnEnd, TurnId};

use crate::StoreMaker;
use crate::records::{ThreadScript, begin_turn, completed, reverted};

suite!(turns:
    turns_in_both_directions,
    items_in_both_directions,
    items_of_one_turn,
    the_way_back_begins_where_the_page_did,
    a_page_of_long_items_ends_early,
    reverted_turns_are_not_shown,
    reverting_twice,
    a_missing_thread_has_no_pages,
);

fn pages(limit: usize, newest_first: bool) -> PageQuery {
    PageQuery {
        cursor: None,
        limit,
        newest_first,
    }
}

async fn all_turns(
    journal: &impl Pages,
    thread: ThreadId,
    limit: usize,
    newest_first: bool,
) -> Vec<TurnEntry> {
    let mut entries = Vec::new();
    let mut query = pages(limit, newest_first);
    loop {
        let page: Page<TurnEntry> = journal.turns(thread, query.clone()).await.unwrap();
        assert!(page.entries.len() <= limit);
        entries.extend(page.entries);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return entries;
        }
    }
}

async fn all_items(
    journal: &impl Pages,
    thread: ThreadId,
    turn: Option<&str>,
    limit: usize,
    newest_first: bool,
) -> Vec<ItemEntry> {
    let mut entries = Vec::new();
    let mut query = pages(limit, newest_first);
    loop {
        let turn = turn.map(TurnId::from);
        let page = journal.items(thread, turn, query.clone()).await.unwrap();
        assert!(page.entries.len() <= limit);
        entries.extend(page.entries);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return entries;
        }
    }
}

fn names(turns: &[TurnEntry]) -> Vec<&str> {
    turns.iter().map(|entry| entry.turn.as_str()).collect()
}

fn items(items: &[ItemEntry]) -> Vec<&str> {
    items.iter().map(|entry| entry.item.id.as_str()).collect()
}

async fn thread(journal: &impl Journal, turns: usize) -> ThreadScript {
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    for turn in 1..=turns {
        script.turn(journal, &format!("t{turn}"), "go").await;
    }
    script
}

async fn turns_in_both_directions(maker: impl StoreMaker) {
    let journal = maker.store();
    // Another thread's rows are stored before and after these.
    thread(journal, 2).await;
    let mut script = thread(journal, 3).await;
    thread(journal, 2).await;
    let from = script.head.next();
    script.append(journal, begin_turn("t4", "still on")).await;
    for limit in [1, 2, 3, 4, 5] {
        let forwards = all_turns(journal, script.thread, limit, false).await;
        assert_eq!(names(&forwards), ["t1", "t2", "t3", "t4"]);
        let backwards = all_turns(journal, script.thread, limit, true).await;
        assert_eq!(names(&backwards), ["t4", "t3", "t2", "t1"]);
        assert_eq!(forwards[3].from, from);
        assert_eq!(forwards[3].ended, None);
        let ended = forwards[0].ended.as_ref().map(|(end, _)| end);
        assert_eq!(ended, Some(&TurnEnd::Completed {}));
        assert!(forwards[0].started_at < forwards[1].started_at);
    }
}

async fn items_in_both_directions(maker: impl StoreMaker) {
    let journal = maker.store();
    thread(journal, 1).await;
    let script = thread(journal, 2).await;
    thread(journal, 1).await;
    let order = ["t1-input", "t1-answer", "t2-input", "t2-answer"];
    for limit in [1, 2, 3, 4, 5] {
        let forwards = all_items(journal, script.thread, None, limit, false).await;
        assert_eq!(items(&forwards), order);
        let mut backwards = all_items(journal, script.thread, None, limit, true).await;
        backwards.reverse();
        assert_eq!(items(&backwards), order);
    }
}

async fn items_of_one_turn(maker: impl StoreMaker) {
    let journal = maker.store();
    let script = thread(journal, 3).await;
    for limit in [1, 2, 3] {
        let entries = all_items(journal, script.thread, Some("t2"), limit, false).await;
        assert_eq!(items(&entries), ["t2-input", "t2-answer"]);
    }
    let entries = all_items(journal, script.thread, Some("t3"), 1, true).await;
    assert_eq!(items(&entries), ["t3-answer", "t3-input"]);
    let entries = all_items(journal, script.thread, Some("t9"), 1, true).await;
    assert_eq!(items(&entries), [""; 0]);
}

async fn the_way_back_begins_where_the_page_did(maker: impl StoreMaker) {
    let journal = maker.store();
    let script = thread(journal, 4).await;
    let mut query = pages(2, true);
    query.cursor = journal
        .turns(script.thread, query.clone())
        .await
        .unwrap()
        .next;
    let page = journal.turns(script.thread, query.clone()).await.unwrap();
    assert_eq!(names(&page.entries), ["t2", "t1"]);
    let cursor: PageCursor = page.back.as_deref().unwrap().parse().unwrap();
    assert_eq!((cursor.seq, cursor.included), (page.entries[0].from, true));
    query.cursor = page.back;
    let again = journal.turns(script.thread, query.clone()).await.unwrap();
    assert_eq!(names(&again.entries), ["t2", "t1"]);
    query.newest_first = false;
    let back = journal.turns(script.thread, query.clone()).await.unwrap();
    assert_eq!(names(&back.entries), ["t2", "t3"]);

    // Items have their turn and their record, which can be used as a cursor too.
    let page = journal
        .items(script.thread, None, pages(3, false))
        .await
        .unwrap();
    let third = &page.entries[2];
    assert_eq!(
        (third.turn.as_str(), third.item.id.as_str()),
        ("t2", "t2-input")
    );
    for (included, newest_first, expected) in [
        (true, true, ["t2-input", "t1-answer"]),
        (false, true, ["t1-answer", "t1-input"]),
        (true, false, ["t2-input", "t2-answer"]),
        (false, false, ["t2-answer", "t3-input"]),
    ] {
        let cursor = PageCursor {
            seq: third.seq,
            included,
        };
        let query = PageQuery {
            cursor: Some(cursor.to_string()),
            ..pages(2, newest_first)
        };
        let page = journal.items(script.thread, None, query).await.unwrap();
        assert_eq!(items(&page.entries), expected);
    }
}

async fn a_page_of_long_items_ends_early(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = thread(journal, 0).await;
    script.append(journal, begin_turn("t1", "go")).await;
    let long = "0123456789abcdef".repeat(3 << 16);
    for item in ["a", "b", "c", "d"] {
        script
            .append(journal, vec![completed("t1", item, &long)])
            .await;
    }
    let page = journal
        .items(script.thread, None, pages(100, false))
        .await
        .unwrap();
    assert_eq!(items(&page.entries), ["t1-input", "a", "b", "c"]);
    let all = all_items(journal, script.thread, None, 100, false).await;
    assert_eq!(items(&all), ["t1-input", "a", "b", "c", "d"]);
}

async fn revert(
    journal: &(impl Journal + Pages),
    script: &mut ThreadScript,
    turn: &str,
    turns: u64,
) {
    let entries = all_turns(journal, script.thread, 10, false).await;
    let entry = entries.iter().find(|entry| entry.turn.as_str() == turn);
    let at = entry.unwrap().from;
    script
        .append(journal, vec![reverted(turn, at, turns)])
        .await;
}

async fn reverted_turns_are_not_shown(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = thread(journal, 3).await;
    revert(journal, &mut script, "t2", 1).await;
    script.turn(journal, "t4", "go").await;
    for limit in [1, 2, 3] {
        let turns = all_turns(journal, script.thread, limit, false).await;
        assert_eq!(names(&turns), ["t1", "t4"]);
        let turns = all_turns(journal, script.thread, limit, true).await;
        assert_eq!(names(&turns), ["t4", "t1"]);
        let entries = all_items(journal, script.thread, None, limit, false).await;
        assert_eq!(
            items(&entries),
            ["t1-input", "t1-answer", "t4-input", "t4-answer"]
        );
        let entries = all_items(journal, script.thread, Some("t3"), limit, false).await;
        assert_eq!(items(&entries), [""; 0]);
        let entries = all_items(journal, script.thread, Some("t1"), limit, false).await;
        assert_eq!(items(&entries), ["t1-input", "t1-answer"]);
    }
    // The records still exist.
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    assert_eq!(records.unwrap().last().unwrap().seq, script.head);
}

async fn reverting_twice(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut script = thread(journal, 3).await;
    revert(journal, &mut script, "t3", 2).await;
    script.turn(journal, "t4", "go").await;
    revert(journal, &mut script, "t4", 2).await;
    script.turn(journal, "t5", "go").await;
    let turns = all_turns(journal, script.thread, 1, false).await;
    assert_eq!(names(&turns), ["t1", "t2", "t5"]);
    revert(journal, &mut script, "t2", 1).await;
    script.turn(journal, "t6", "go").await;
    let turns = all_turns(journal, script.thread, 1, true).await;
    assert_eq!(names(&turns), ["t6", "t1"]);
    revert(journal, &mut script, "t1", 0).await;
    let turns = all_turns(journal, script.thread, 1, true).await;
    assert_eq!(names(&turns), [""; 0]);
}

async fn a_missing_thread_has_no_pages(maker: impl StoreMaker) {
    let journal = maker.store();
    let thread = ThreadId::mint();
    let turns = journal.turns(thread, pages(1, false)).await;
    assert_eq!(turns, Err(ReadError::NotFound));
    let items = journal.items(thread, None, pages(1, false)).await;
    assert_eq!(items, Err(ReadError::NotFound));
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bad = PageQuery {
        cursor: Some("x".to_owned()),
        ..pages(1, false)
    };
    let turns = journal.turns(script.thread, bad).await;
    assert_eq!(turns, Err(ReadError::BadCursor));
}
