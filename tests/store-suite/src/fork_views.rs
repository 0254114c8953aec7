//! Pages, lists and search treat a fork as one thread.

use raddle_core::ports::{Journal, ListQuery, PageQuery, Pages};
use raddle_core::{Base, Seq, ThreadId};

use crate::forks::{all, check_like_plain_thread, fold, with_turns};
use crate::records::{ThreadScript, begin_turn, completed, forked, renamed, reverted, turn_ended};
use crate::search::pages_of;
use crate::{Handles, StoreMaker};

suite!(fork_views, on one handle and on two:
    pages_across_the_fork_point,
    a_turn_that_was_forked_in_its_middle,
    reverting_on_one_side,
    lists_show_a_fork_as_it_was_then,
    search_finds_shared_records,
);

async fn pages_across_the_fork_point(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 4).await;
    // Between two turns, and inside one.
    let mut fork_points = vec![script.head];
    script.append(journal, begin_turn("t5", "half")).await;
    fork_points.push(script.head);
    let input = vec![completed("t5", "i", "more"), turn_ended("t5")];
    script.append(journal, input).await;
    for at in fork_points {
        let mut fork = script.fork(other, at).await;
        let started = forked(fork.thread, script.thread, at, 4);
        fork.append(other, vec![started]).await;
        fork.append(other, vec![completed("t5", "own", "own")])
            .await;
        for turn in 6..9 {
            fork.turn(other, &format!("t{turn}"), "own").await;
        }
        check_like_plain_thread(journal, fork.thread).await;
    }
    check_like_plain_thread(journal, script.thread).await;
}

async fn a_turn_that_was_forked_in_its_middle(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    script.append(journal, begin_turn("t2", "go")).await;
    let mut early = script.fork(other, script.head).await;
    script.append(journal, vec![turn_ended("t2")]).await;
    // The turn has ended, but not at this record.
    let mut late = script.fork(other, early.head).await;
    let query = PageQuery {
        limit: 1,
        newest_first: true,
        cursor: None,
    };
    let ended = async |thread| {
        let page = journal.turns(thread, query.clone()).await.unwrap();
        assert_eq!(page.entries[0].turn, "t2".into());
        page.entries[0].ended.is_some()
    };
    assert!(ended(script.thread).await);
    for fork in [&mut early, &mut late] {
        assert!(!ended(fork.thread).await);
        fork.append(other, vec![turn_ended("t2")]).await;
        assert!(ended(fork.thread).await);
        check_like_plain_thread(journal, fork.thread).await;
    }
    // One more fork between a start and its end.
    let mut last = early.fork(journal, Seq(early.head.0 - 1)).await;
    assert!(!ended(last.thread).await);
    last.append(journal, vec![turn_ended("t2")]).await;
    journal.delete(early.thread).await.unwrap();
    journal.delete(script.thread).await.unwrap();
    assert!(ended(last.thread).await);
    assert!(ended(late.thread).await);
}

async fn reverting_on_one_side(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 4).await;
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let turns = journal.turns(script.thread, query.clone()).await.unwrap();
    let (second, third) = (turns.entries[1].from, turns.entries[2].from);
    let count = async |thread| {
        let page = journal.turns(thread, query.clone()).await.unwrap();
        page.entries.len()
    };
    let mut fork = script.fork(other, script.head).await;
    fork.append(other, vec![reverted("t2", second, 1)]).await;
    assert_eq!(count(script.thread).await, 4);
    assert_eq!(count(fork.thread).await, 1);
    script.append(journal, vec![reverted("t3", third, 2)]).await;
    assert_eq!(count(script.thread).await, 2);
    assert_eq!(count(fork.thread).await, 1);
    // Before and after the revert.
    let before = script.fork(other, Seq(script.head.0 - 1)).await;
    assert_eq!(count(before.thread).await, 4);
    let mut after = script.fork(other, script.head).await;
    assert_eq!(count(after.thread).await, 2);
    after.append(journal, vec![reverted("t2", second, 1)]).await;
    after.turn(journal, "t9", "again").await;
    assert_eq!(count(after.thread).await, 2);
    assert_eq!(count(script.thread).await, 2);
    for thread in [script.thread, fork.thread, before.thread, after.thread] {
        check_like_plain_thread(journal, thread).await;
    }
}

async fn lists_show_a_fork_as_it_was_then(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    script.append(journal, vec![renamed("then")]).await;
    let at = script.head;
    // There is a base halfway, so not all records are read again.
    let base = Base::of(&fold(&all(journal, script.thread).await));
    journal.save_base(script.thread, base).await.unwrap();
    script.turn(journal, "t2", "more").await;
    script.append(journal, vec![renamed("now")]).await;
    for (at, name) in [
        (Seq(at.0 - 1), None),
        (at, Some("then")),
        (at.next(), Some("then")),
    ] {
        let mut fork = script.fork(other, at).await;
        let page = journal.list(query()).await.unwrap();
        // Before its own first record it is not listed.
        assert!(page.entries.iter().all(|it| it.thread != fork.thread));
        let started = forked(fork.thread, script.thread, at, 1);
        fork.append(other, vec![started]).await;
        let page = journal.list(query()).await.unwrap();
        let mut summaries = page.entries.iter();
        let summary = summaries.find(|it| it.thread == fork.thread).unwrap();
        assert_eq!(summary.name.as_deref(), name);
        let folded = fold(&all(journal, fork.thread).await);
        assert_eq!(
            Some(summary),
            raddle_core::ports::Summary::of(&folded).as_ref()
        );
        journal.delete(fork.thread).await.unwrap();
    }
}

async fn search_finds_shared_records(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    script.turn(journal, "t1", "the early needle").await;
    let at = script.head;
    script.turn(journal, "t2", "the late thimble").await;
    let mut fork = script.fork(other, at).await;
    let started = forked(fork.thread, script.thread, at, 1);
    fork.append(other, vec![started]).await;
    fork.turn(other, "t3", "its own spindle").await;
    let (parent, child) = (script.thread, fork.thread);
    check_search(&handles, "needle", &[parent, child]).await;
    check_search(&handles, "thimble", &[parent]).await;
    check_search(&handles, "spindle", &[child]).await;
    journal.delete(parent).await.unwrap();
    check_search(&handles, "needle", &[child]).await;
    check_search(&handles, "thimble", &[]).await;
    check_search(&handles, "spindle", &[child]).await;
    journal.delete(child).await.unwrap();
    check_search(&handles, "needle", &[]).await;
}

fn query() -> ListQuery {
    ListQuery {
        limit: 10,
        ..ListQuery::default()
    }
}

/// Searches on both handles, once the index is up to date.
async fn check_search(handles: &Handles<impl StoreMaker>, text: &str, threads: &[ThreadId]) {
    handles.settle().await;
    let mut expected = threads.to_vec();
    expected.sort();
    for journal in [handles.first(), handles.second()] {
        let mut matches = pages_of(journal, text, query()).await;
        matches.sort();
        assert_eq!(matches, expected, "{text}");
    }
}
