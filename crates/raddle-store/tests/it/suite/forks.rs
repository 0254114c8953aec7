//! A fork begins with another thread's records, and then neither notices the other.

use raddle_core::ports::{ForkError, Journal, ListQuery, PageQuery, Pages, ReadError};
use raddle_core::{Base, Body, Class, Record, Seq, Thread, ThreadId};

use crate::records::{
    Script, begin_turn, completed, delta, forked, item_started, renamed, reverted, saved,
    turn_ended,
};

super::for_each_journal!(
    a_fork_begins_with_the_same_records,
    what_cannot_be_forked,
    each_goes_on_by_itself,
    a_fork_of_a_fork,
    a_fork_of_what_was_taken_over,
    a_fork_before_everything,
    a_fork_where_numbers_were_skipped,
    pages_over_the_seam,
    a_turn_that_was_forked_in_its_middle,
    reverting_on_one_side,
    bases_on_both_sides_of_the_seam,
    open_text_is_in_both,
    settled_text_may_be_gone,
    deleting_the_parent_first,
    deleting_the_child_first,
    deleting_from_the_middle,
    lists_show_a_fork_as_it_was_then,
    search_finds_what_was_taken_over,
    a_fork_has_its_own_fence,
);

async fn all(journal: &impl Journal, thread: ThreadId) -> Vec<Record> {
    journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap()
}

/// The thread is like one that was written at a stroke, whatever is asked of it.
async fn is_like_any_other(journal: &(impl Journal + Pages), thread: ThreadId) {
    let records = all(journal, thread).await;
    let copy = ThreadId::mint();
    let copied = journal.append(copy, Seq::ZERO, &records, Class::Power);
    assert_eq!(
        copied.await,
        journal.head(thread).await.map_err(|_| unreachable!())
    );
    let mut turns = vec![None, Some("none".into())];
    for newest_first in [false, true] {
        for limit in [1, 2, 100] {
            let mut query = PageQuery {
                limit,
                newest_first,
                cursor: None,
            };
            loop {
                let page = journal.turns(thread, query.clone()).await.unwrap();
                assert_eq!(Ok(&page), journal.turns(copy, query.clone()).await.as_ref());
                turns.extend(page.entries.into_iter().map(|it| Some(it.turn)));
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            for turn in &turns {
                query.cursor = None;
                loop {
                    let page = journal.items(thread, turn.clone(), query.clone()).await;
                    let expected = journal.items(copy, turn.clone(), query.clone()).await;
                    assert_eq!(page, expected);
                    query.cursor = page.unwrap().next;
                    if query.cursor.is_none() {
                        break;
                    }
                }
            }
        }
    }
    for bytes_max in [1, 700, 5000] {
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map_or(Seq::ZERO, |it: &Record| it.seq);
            let page = journal.read(thread, after, bytes_max).await.unwrap();
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, records);
    }
    journal.delete(copy).await.unwrap();
}

fn folded(records: &[Record]) -> Thread {
    let mut thread = Thread::new();
    for record in records {
        thread.apply(record);
    }
    thread
}

/// A thread with so many turns, `t1` and so on.
async fn with_turns(journal: &impl Journal, count: usize) -> Script {
    let mut script = Script::new();
    script.start(journal, "/w").await;
    for turn in 1..=count {
        script.turn(journal, &format!("t{turn}"), "go").await;
    }
    script
}

fn upto(records: &[Record], at: Seq) -> Vec<Record> {
    let first = records.iter().take_while(|it| it.seq <= at);
    first.cloned().collect()
}

async fn a_fork_begins_with_the_same_records(journal: impl Journal + Pages) {
    let script = with_turns(&journal, 3).await;
    let whole = all(&journal, script.thread).await;
    for at in 1..=script.head.0 {
        let fork = script.fork(&journal, Seq(at)).await;
        let taken = upto(&whole, Seq(at));
        assert_eq!(all(&journal, fork.thread).await, taken);
        assert_eq!(Some(fork.head), taken.last().map(|it| it.seq));
        assert_eq!(journal.head(fork.thread).await, Ok(fork.head));
        is_like_any_other(&journal, fork.thread).await;
    }
    assert_eq!(all(&journal, script.thread).await, whole);
}

async fn what_cannot_be_forked(journal: impl Journal) {
    let script = with_turns(&journal, 1).await;
    let other = with_turns(&journal, 1).await;
    let before = all(&journal, other.thread).await;
    for to in [other.thread, script.thread] {
        let refused = journal.fork(script.thread, script.head, to).await;
        assert_eq!(refused, Err(ForkError::Taken));
    }
    let to = ThreadId::mint();
    let beyond = journal.fork(script.thread, script.head.next(), to).await;
    assert_eq!(beyond, Err(ForkError::Beyond { head: script.head }));
    for at in [Seq::ZERO, Seq(1)] {
        let nothing = journal.fork(ThreadId::mint(), at, to).await;
        assert_eq!(nothing, Err(ForkError::Read(ReadError::NotFound)));
    }
    journal.delete(script.thread).await.unwrap();
    let gone = journal.fork(script.thread, Seq(1), to).await;
    assert_eq!(gone, Err(ForkError::Read(ReadError::NotFound)));
    assert_eq!(journal.head(to).await, Ok(Seq::ZERO));
    assert_eq!(
        journal.read(to, Seq::ZERO, 1).await,
        Err(ReadError::NotFound)
    );
    assert_eq!(all(&journal, other.thread).await, before);
}

async fn each_goes_on_by_itself(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 2).await;
    let mut fork = script.fork(&journal, script.head).await;
    let shared = all(&journal, script.thread).await;
    let started = forked(fork.thread, script.thread, fork.head, 2);
    let mut ours = fork.append(&journal, vec![started]).await;
    // The same numbers mean something else in each.
    let theirs = script.append(&journal, vec![renamed("parent")]).await;
    ours.extend(fork.append(&journal, vec![renamed("fork")]).await);
    assert_eq!(
        all(&journal, fork.thread).await,
        [shared.clone(), ours].concat()
    );
    assert_eq!(
        all(&journal, script.thread).await,
        [shared, theirs].concat()
    );
    script.turn(&journal, "t3", "parent").await;
    fork.turn(&journal, "t3", "fork").await;
    for thread in [script.thread, fork.thread] {
        is_like_any_other(&journal, thread).await;
    }
}

async fn a_fork_of_a_fork(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 2).await;
    let mut generations = vec![];
    for generation in 0..4 {
        let mut fork = script.fork(&journal, script.head).await;
        let started = forked(fork.thread, script.thread, fork.head, 2);
        fork.append(&journal, vec![started]).await;
        fork.turn(&journal, &format!("g{generation}"), "go").await;
        // What the parent does after it is none of its business.
        script.turn(&journal, "later", "go").await;
        generations.push(script);
        script = fork;
    }
    generations.push(script);
    for script in &generations {
        is_like_any_other(&journal, script.thread).await;
    }
    let last = all(&journal, generations[4].thread).await;
    let text = format!("{last:?}");
    for generation in 0..4 {
        assert!(text.contains(&format!("\"g{generation}\"")));
    }
    assert!(!text.contains("later"));
}

async fn a_fork_of_what_was_taken_over(journal: impl Journal + Pages) {
    let script = with_turns(&journal, 3).await;
    let whole = all(&journal, script.thread).await;
    let mut fork = script.fork(&journal, script.head).await;
    fork.turn(&journal, "own", "go").await;
    for at in [Seq(3), Seq(script.head.0 - 1), script.head] {
        let again = fork.fork(&journal, at).await;
        assert_eq!(all(&journal, again.thread).await, upto(&whole, at));
        is_like_any_other(&journal, again.thread).await;
    }
    let own = fork.fork(&journal, script.head.next()).await;
    assert_eq!(own.head, script.head.next());
    journal.delete(fork.thread).await.unwrap();
    journal.delete(script.thread).await.unwrap();
    assert_eq!(upto(&all(&journal, own.thread).await, script.head), whole);
    is_like_any_other(&journal, own.thread).await;
}

async fn a_fork_before_everything(journal: impl Journal) {
    let script = with_turns(&journal, 1).await;
    let mut fork = script.fork(&journal, Seq::ZERO).await;
    assert_eq!(fork.head, Seq::ZERO);
    assert_eq!(all(&journal, fork.thread).await, []);
    let again = journal.fork(script.thread, Seq(1), fork.thread).await;
    assert_eq!(again, Err(ForkError::Taken));
    let records = fork.start(&journal, "/w").await;
    assert_eq!(all(&journal, fork.thread).await, records);
}

async fn a_fork_where_numbers_were_skipped(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 1).await;
    let last = script.head;
    let mut ahead = Script {
        head: last.plus(1000),
        ..script.clone()
    };
    let records = ahead.records(begin_turn("t2", "after the gap"));
    let appended = journal.append(script.thread, last, &records, Class::Power);
    assert_eq!(appended.await, Ok(ahead.head));
    script.head = ahead.head;
    for at in [last.next(), last.plus(999)] {
        let mut fork = script.fork(&journal, at).await;
        assert_eq!(fork.head, last);
        // Its own records may have numbers before the one that was named.
        fork.turn(&journal, "t2", "in the gap").await;
        is_like_any_other(&journal, fork.thread).await;
        let again = fork.fork(&journal, fork.head).await;
        assert_eq!(
            all(&journal, again.thread).await,
            all(&journal, fork.thread).await
        );
    }
}

async fn pages_over_the_seam(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 4).await;
    // Between two turns, and inside one.
    let mut seams = vec![script.head];
    script.append(&journal, begin_turn("t5", "half")).await;
    seams.push(script.head);
    let input = vec![completed("t5", "i", "more"), turn_ended("t5")];
    script.append(&journal, input).await;
    for at in seams {
        let mut fork = script.fork(&journal, at).await;
        let started = forked(fork.thread, script.thread, at, 4);
        fork.append(&journal, vec![started]).await;
        fork.append(&journal, vec![completed("t5", "own", "own")])
            .await;
        for turn in 6..9 {
            fork.turn(&journal, &format!("t{turn}"), "own").await;
        }
        is_like_any_other(&journal, fork.thread).await;
    }
    is_like_any_other(&journal, script.thread).await;
}

async fn a_turn_that_was_forked_in_its_middle(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 1).await;
    script.append(&journal, begin_turn("t2", "go")).await;
    let mut early = script.fork(&journal, script.head).await;
    script.append(&journal, vec![turn_ended("t2")]).await;
    // It has ended, but not at this record.
    let mut late = script.fork(&journal, early.head).await;
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
        fork.append(&journal, vec![turn_ended("t2")]).await;
        assert!(ended(fork.thread).await);
        is_like_any_other(&journal, fork.thread).await;
    }
    // One more between a start and its end.
    let mut last = early.fork(&journal, Seq(early.head.0 - 1)).await;
    assert!(!ended(last.thread).await);
    last.append(&journal, vec![turn_ended("t2")]).await;
    journal.delete(early.thread).await.unwrap();
    journal.delete(script.thread).await.unwrap();
    assert!(ended(last.thread).await);
    assert!(ended(late.thread).await);
}

async fn reverting_on_one_side(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 4).await;
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
    let mut fork = script.fork(&journal, script.head).await;
    fork.append(&journal, vec![reverted("t2", second, 1)]).await;
    assert_eq!(count(script.thread).await, 4);
    assert_eq!(count(fork.thread).await, 1);
    script
        .append(&journal, vec![reverted("t3", third, 2)])
        .await;
    assert_eq!(count(script.thread).await, 2);
    assert_eq!(count(fork.thread).await, 1);
    // Before and after the one went back.
    let before = script.fork(&journal, Seq(script.head.0 - 1)).await;
    assert_eq!(count(before.thread).await, 4);
    let mut after = script.fork(&journal, script.head).await;
    assert_eq!(count(after.thread).await, 2);
    after
        .append(&journal, vec![reverted("t2", second, 1)])
        .await;
    after.turn(&journal, "t9", "again").await;
    assert_eq!(count(after.thread).await, 2);
    assert_eq!(count(script.thread).await, 2);
    for thread in [script.thread, fork.thread, before.thread, after.thread] {
        is_like_any_other(&journal, thread).await;
    }
}

async fn bases_on_both_sides_of_the_seam(journal: impl Journal) {
    let mut script = with_turns(&journal, 1).await;
    let mut bases = Vec::new();
    for turn in ["t2", "t3"] {
        let base = Base::of(&folded(&all(&journal, script.thread).await));
        journal
            .save_base(script.thread, base.clone())
            .await
            .unwrap();
        bases.push(base);
        script.turn(&journal, turn, "go").await;
    }
    let heads: Vec<Seq> = bases.iter().map(|it| it.thread.head()).collect();
    // Only those up to the seam are the fork's.
    let between = script.fork(&journal, Seq(heads[1].0 - 1)).await;
    let newest = async |thread, at| journal.base(thread, at).await.unwrap();
    assert_eq!(newest(between.thread, None).await, Some(bases[0].clone()));
    let at_one = script.fork(&journal, heads[1]).await;
    assert_eq!(newest(at_one.thread, None).await, Some(bases[1].clone()));
    let mut fork = script.fork(&journal, script.head).await;
    // A base of its own for what it took over stands beside its parent's.
    let seam = fork.head;
    let own = Base::of(&folded(&all(&journal, fork.thread).await));
    journal.save_base(fork.thread, own.clone()).await.unwrap();
    assert_eq!(newest(fork.thread, None).await, Some(own.clone()));
    assert_eq!(newest(script.thread, None).await, Some(bases[1].clone()));
    fork.turn(&journal, "own", "go").await;
    let late = Base::of(&folded(&all(&journal, fork.thread).await));
    journal.save_base(fork.thread, late.clone()).await.unwrap();
    for (at, base) in [
        (None, Some(&late)),
        (Some(seam), Some(&own)),
        (Some(Seq(seam.0 - 1)), Some(&bases[1])),
        (Some(heads[0]), Some(&bases[0])),
        (Some(Seq(heads[0].0 - 1)), None),
    ] {
        assert_eq!(newest(fork.thread, at).await.as_ref(), base, "{at:?}");
    }
    journal.delete(script.thread).await.unwrap();
    assert_eq!(
        newest(fork.thread, Some(heads[1])).await,
        Some(bases[1].clone())
    );
    let opened = newest(fork.thread, None).await.unwrap().thread;
    assert_eq!(opened, folded(&all(&journal, fork.thread).await));
}

fn texts(records: &[Record]) -> String {
    let texts = records.iter().filter_map(|record| match &record.body {
        Body::Delta(delta) => Some(delta.text.as_str()),
        Body::Event(_) => None,
    });
    texts.collect()
}

async fn open_text_is_in_both(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 1).await;
    script.append(&journal, vec![item_started("t2", "i")]).await;
    script.append(&journal, vec![delta("i", 0, "ab")]).await;
    let at = script.head;
    script.append(&journal, vec![delta("i", 2, "cd")]).await;
    let mut early = script.fork(&journal, at).await;
    assert_eq!(early.head, at);
    let mut late = script.fork(&journal, script.head).await;
    let text = async |thread| texts(&all(&journal, thread).await);
    assert_eq!(text(early.thread).await, "ab");
    assert_eq!(text(late.thread).await, "abcd");
    early.append(&journal, vec![delta("i", 2, "xy")]).await;
    script
        .append(&journal, vec![completed("t2", "i", "abcd")])
        .await;
    assert_eq!(text(script.thread).await, "");
    assert_eq!(text(early.thread).await, "abxy");
    late.append(&journal, vec![saved("i", "abcd")]).await;
    late.append(&journal, vec![delta("i", 4, "ef")]).await;
    let mut again = late.fork(&journal, late.head).await;
    assert_eq!(text(late.thread).await, "ef");
    assert_eq!(text(again.thread).await, "ef");
    again
        .append(&journal, vec![completed("t2", "i", "all")])
        .await;
    journal.delete(script.thread).await.unwrap();
    journal.delete(late.thread).await.unwrap();
    assert_eq!(text(early.thread).await, "abxy");
    assert_eq!(text(again.thread).await, "");
    for thread in [early.thread, again.thread] {
        is_like_any_other(&journal, thread).await;
    }
}

async fn settled_text_may_be_gone(journal: impl Journal) {
    let mut script = with_turns(&journal, 1).await;
    let started = script.append(&journal, vec![item_started("t2", "i")]).await;
    script.append(&journal, vec![delta("i", 0, "ab")]).await;
    let at = script.head;
    script
        .append(&journal, vec![completed("t2", "i", "ab")])
        .await;
    let mut fork = script.fork(&journal, at).await;
    assert!(fork.head == at || fork.head == started[0].seq);
    assert_eq!(journal.head(fork.thread).await, Ok(fork.head));
    fork.append(&journal, vec![renamed("on")]).await;
}

async fn deleting_the_parent_first(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 3).await;
    let mut fork = script.fork(&journal, Seq(script.head.0 - 3)).await;
    script.turn(&journal, "t4", "go").await;
    fork.turn(&journal, "own", "go").await;
    let whole = all(&journal, fork.thread).await;
    journal.delete(script.thread).await.unwrap();
    assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
    assert_eq!(all(&journal, fork.thread).await, whole);
    is_like_any_other(&journal, fork.thread).await;
    // It goes on, and can be forked again, although its parent is no more.
    fork.turn(&journal, "after", "go").await;
    let again = fork.fork(&journal, Seq(5)).await;
    journal.delete(fork.thread).await.unwrap();
    assert_eq!(all(&journal, again.thread).await, upto(&whole, Seq(5)));
    journal.delete(again.thread).await.unwrap();
    for thread in [script.thread, fork.thread, again.thread] {
        let read = journal.read(thread, Seq::ZERO, 1).await;
        assert_eq!(read, Err(ReadError::NotFound));
    }
}

async fn deleting_the_child_first(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 3).await;
    let mut fork = script.fork(&journal, script.head).await;
    fork.turn(&journal, "own", "go").await;
    script.turn(&journal, "t4", "go").await;
    let whole = all(&journal, script.thread).await;
    journal.delete(fork.thread).await.unwrap();
    assert_eq!(all(&journal, script.thread).await, whole);
    is_like_any_other(&journal, script.thread).await;
    // Its id can be forked to again.
    let again = journal.fork(script.thread, Seq(4), fork.thread).await;
    assert_eq!(again, Ok(Seq(4)));
    assert_eq!(all(&journal, fork.thread).await, upto(&whole, Seq(4)));
    journal.delete(script.thread).await.unwrap();
    assert_eq!(all(&journal, fork.thread).await, upto(&whole, Seq(4)));
}

async fn deleting_from_the_middle(journal: impl Journal + Pages) {
    let root = with_turns(&journal, 2).await;
    let mut middle = root.fork(&journal, root.head).await;
    middle.turn(&journal, "middle", "go").await;
    let mut leaves = Vec::new();
    for at in [middle.head, Seq(root.head.0 + 2), Seq(4)] {
        let mut leaf = middle.fork(&journal, at).await;
        leaf.turn(&journal, "leaf", "go").await;
        let whole = all(&journal, leaf.thread).await;
        leaves.push((leaf, whole));
    }
    journal.delete(middle.thread).await.unwrap();
    while let Some((leaf, whole)) = leaves.pop() {
        for (leaf, whole) in &leaves {
            assert_eq!(&all(&journal, leaf.thread).await, whole);
            is_like_any_other(&journal, leaf.thread).await;
        }
        assert_eq!(all(&journal, leaf.thread).await, whole);
        journal.delete(leaf.thread).await.unwrap();
    }
    is_like_any_other(&journal, root.thread).await;
}

fn query() -> ListQuery {
    ListQuery {
        limit: 10,
        ..ListQuery::default()
    }
}

async fn lists_show_a_fork_as_it_was_then(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 1).await;
    script.append(&journal, vec![renamed("then")]).await;
    let at = script.head;
    // Half way there is a base, so that not all is read again.
    let base = Base::of(&folded(&all(&journal, script.thread).await));
    journal.save_base(script.thread, base).await.unwrap();
    script.turn(&journal, "t2", "more").await;
    script.append(&journal, vec![renamed("now")]).await;
    for (at, name) in [
        (Seq(at.0 - 1), None),
        (at, Some("then")),
        (at.next(), Some("then")),
    ] {
        let mut fork = script.fork(&journal, at).await;
        let page = journal.list(query()).await.unwrap();
        // Before its own first record it is nobody.
        assert!(page.entries.iter().all(|it| it.thread != fork.thread));
        let started = forked(fork.thread, script.thread, at, 1);
        fork.append(&journal, vec![started]).await;
        let page = journal.list(query()).await.unwrap();
        let mut summaries = page.entries.iter();
        let summary = summaries.find(|it| it.thread == fork.thread).unwrap();
        assert_eq!(summary.name.as_deref(), name);
        let folded = folded(&all(&journal, fork.thread).await);
        assert_eq!(
            Some(summary),
            raddle_core::ports::Summary::of(&folded).as_ref()
        );
        journal.delete(fork.thread).await.unwrap();
    }
}

async fn search_finds_what_was_taken_over(journal: impl Journal + Pages) {
    let mut script = Script::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t1", "the early needle").await;
    let at = script.head;
    script.turn(&journal, "t2", "the late thimble").await;
    let mut fork = script.fork(&journal, at).await;
    let started = forked(fork.thread, script.thread, at, 1);
    fork.append(&journal, vec![started]).await;
    fork.turn(&journal, "t3", "its own spindle").await;
    let (parent, child) = (script.thread, fork.thread);
    finds(&journal, "needle", &[parent, child]).await;
    finds(&journal, "thimble", &[parent]).await;
    finds(&journal, "spindle", &[child]).await;
    journal.delete(parent).await.unwrap();
    finds(&journal, "needle", &[child]).await;
    finds(&journal, "thimble", &[]).await;
    finds(&journal, "spindle", &[child]).await;
    journal.delete(child).await.unwrap();
    finds(&journal, "needle", &[]).await;
}

/// Search lags behind, so it is asked until it has found what is there.
async fn finds(journal: &impl Pages, text: &str, threads: &[ThreadId]) {
    let mut expected = threads.to_vec();
    expected.sort();
    let mut found = Vec::new();
    let late = std::time::Instant::now() + super::LAG_MAX;
    while std::time::Instant::now() < late {
        let page = journal.search(text.to_owned(), query()).await.unwrap();
        found = page.entries.iter().map(|it| it.thread).collect();
        found.sort();
        if found == expected {
            break;
        }
    }
    assert_eq!(found, expected, "{text}");
}

async fn a_fork_has_its_own_fence(journal: impl Journal) {
    let mut script = with_turns(&journal, 2).await;
    let at = Seq(script.head.0 - 1);
    let mut fork = script.fork(&journal, at).await;
    // A writer that knows the parent's head knows nothing of the fork's.
    let records = script.clone().records(vec![renamed("stale")]);
    let class = Class::Power;
    let stale = journal
        .append(fork.thread, script.head, &records, class)
        .await;
    assert_eq!(stale, Err(raddle_core::ports::AppendError::Conflict));
    let ours = fork.append(&journal, vec![renamed("fork")]).await;
    let theirs = script.append(&journal, vec![renamed("parent")]).await;
    let rest = journal.read(fork.thread, at, usize::MAX).await;
    assert_eq!(rest, Ok(ours));
    let rest = journal.read(script.thread, at.next(), usize::MAX).await;
    assert_eq!(rest, Ok(theirs));
}
