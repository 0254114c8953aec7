//! A fork begins with another thread's records, and then both are independent.

use raddle_core::ports::{ForkError, Journal, PageQuery, Pages, ReadError};
use raddle_core::{Base, Class, Record, Seq, Thread, ThreadId};

use crate::reading::deltas;
use crate::records::{
    ThreadScript, begin_turn, completed, delta, forked, item_started, renamed, saved,
};
use crate::{Handles, StoreMaker};

suite!(forks, on one handle and on two:
    a_fork_begins_with_the_same_records,
    invalid_forks_are_rejected,
    each_goes_on_by_itself,
    a_fork_of_a_fork,
    a_fork_within_shared_records,
    a_fork_before_everything,
    a_fork_where_numbers_were_skipped,
    bases_before_and_after_the_fork_point,
    open_text_is_in_both,
    settled_text_may_be_gone,
    a_fork_has_its_own_head,
);

pub(crate) async fn all(journal: &impl Journal, thread: ThreadId) -> Vec<Record> {
    journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap()
}

/// Checks that the thread equals one with the same records that was written in one append.
pub(crate) async fn check_like_plain_thread(journal: &(impl Journal + Pages), thread: ThreadId) {
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

pub(crate) fn fold(records: &[Record]) -> Thread {
    let mut thread = Thread::new();
    for record in records {
        thread.apply(record);
    }
    thread
}

/// Creates a thread with this many turns, `t1` and so on.
pub(crate) async fn with_turns(journal: &impl Journal, count: usize) -> ThreadScript {
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    for turn in 1..=count {
        script.turn(journal, &format!("t{turn}"), "go").await;
    }
    script
}

pub(crate) fn upto(records: &[Record], at: Seq) -> Vec<Record> {
    let first = records.iter().take_while(|it| it.seq <= at);
    first.cloned().collect()
}

async fn a_fork_begins_with_the_same_records(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let script = with_turns(journal, 3).await;
    let whole = all(journal, script.thread).await;
    for at in 1..=script.head.0 {
        let fork = script.fork(other, Seq(at)).await;
        let shared = upto(&whole, Seq(at));
        for journal in [journal, other] {
            assert_eq!(all(journal, fork.thread).await, shared);
            assert_eq!(journal.head(fork.thread).await, Ok(fork.head));
        }
        assert_eq!(Some(fork.head), shared.last().map(|it| it.seq));
        check_like_plain_thread(journal, fork.thread).await;
    }
    assert_eq!(all(other, script.thread).await, whole);
}

async fn invalid_forks_are_rejected(handles: Handles<impl StoreMaker>) {
    let (journal, forker) = (handles.first(), handles.second());
    let script = with_turns(journal, 1).await;
    let other = with_turns(journal, 1).await;
    let before = all(journal, other.thread).await;
    for to in [other.thread, script.thread] {
        let result = forker.fork(script.thread, script.head, to).await;
        assert_eq!(result, Err(ForkError::Taken));
    }
    let to = ThreadId::mint();
    let beyond = forker.fork(script.thread, script.head.next(), to).await;
    assert_eq!(beyond, Err(ForkError::Beyond { head: script.head }));
    for at in [Seq::ZERO, Seq(1)] {
        let missing = forker.fork(ThreadId::mint(), at, to).await;
        assert_eq!(missing, Err(ForkError::Read(ReadError::NotFound)));
    }
    journal.delete(script.thread).await.unwrap();
    let deleted = forker.fork(script.thread, Seq(1), to).await;
    assert_eq!(deleted, Err(ForkError::Read(ReadError::NotFound)));
    assert_eq!(forker.head(to).await, Ok(Seq::ZERO));
    assert_eq!(
        forker.read(to, Seq::ZERO, 1).await,
        Err(ReadError::NotFound)
    );
    assert_eq!(all(journal, other.thread).await, before);
}

async fn each_goes_on_by_itself(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 2).await;
    let mut fork = script.fork(other, script.head).await;
    let shared = all(journal, script.thread).await;
    let started = forked(fork.thread, script.thread, fork.head, 2);
    let mut ours = fork.append(other, vec![started]).await;
    // The same numbers have different records in each.
    let theirs = script.append(journal, vec![renamed("parent")]).await;
    ours.extend(fork.append(other, vec![renamed("fork")]).await);
    assert_eq!(
        all(journal, fork.thread).await,
        [shared.clone(), ours].concat()
    );
    assert_eq!(all(journal, script.thread).await, [shared, theirs].concat());
    script.turn(journal, "t3", "parent").await;
    fork.turn(other, "t3", "fork").await;
    for thread in [script.thread, fork.thread] {
        check_like_plain_thread(journal, thread).await;
        check_like_plain_thread(other, thread).await;
    }
}

async fn a_fork_of_a_fork(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 2).await;
    let mut generations = vec![];
    // Each generation is forked and continued by another node than the one before.
    for (generation, (journal, other)) in
        (0..4).zip([(journal, other), (other, journal)].into_iter().cycle())
    {
        let mut fork = script.fork(other, script.head).await;
        let started = forked(fork.thread, script.thread, fork.head, 2);
        fork.append(other, vec![started]).await;
        fork.turn(other, &format!("g{generation}"), "go").await;
        // Later records of the parent do not affect the fork.
        script.turn(journal, "later", "go").await;
        generations.push(script);
        script = fork;
    }
    generations.push(script);
    for script in &generations {
        check_like_plain_thread(journal, script.thread).await;
    }
    let last = all(journal, generations[4].thread).await;
    let text = format!("{last:?}");
    for generation in 0..4 {
        assert!(text.contains(&format!("\"g{generation}\"")));
    }
    assert!(!text.contains("later"));
}

async fn a_fork_within_shared_records(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let script = with_turns(journal, 3).await;
    let whole = all(journal, script.thread).await;
    let mut fork = script.fork(other, script.head).await;
    fork.turn(other, "own", "go").await;
    for at in [Seq(3), Seq(script.head.0 - 1), script.head] {
        let again = fork.fork(journal, at).await;
        assert_eq!(all(journal, again.thread).await, upto(&whole, at));
        check_like_plain_thread(journal, again.thread).await;
    }
    let own = fork.fork(journal, script.head.next()).await;
    assert_eq!(own.head, script.head.next());
    journal.delete(fork.thread).await.unwrap();
    other.delete(script.thread).await.unwrap();
    assert_eq!(upto(&all(journal, own.thread).await, script.head), whole);
    check_like_plain_thread(journal, own.thread).await;
}

async fn a_fork_before_everything(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let script = with_turns(journal, 1).await;
    let mut fork = script.fork(other, Seq::ZERO).await;
    assert_eq!(fork.head, Seq::ZERO);
    assert_eq!(all(journal, fork.thread).await, []);
    let again = journal.fork(script.thread, Seq(1), fork.thread).await;
    assert_eq!(again, Err(ForkError::Taken));
    let records = fork.start(other, "/w").await;
    assert_eq!(all(journal, fork.thread).await, records);
}

async fn a_fork_where_numbers_were_skipped(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    let last = script.head;
    let mut ahead = ThreadScript {
        head: last.plus(1000),
        ..script.clone()
    };
    let records = ahead.records(begin_turn("t2", "after the gap"));
    let appended = journal.append(script.thread, last, &records, Class::Power);
    assert_eq!(appended.await, Ok(ahead.head));
    script.head = ahead.head;
    for at in [last.next(), last.plus(999)] {
        let mut fork = script.fork(other, at).await;
        assert_eq!(fork.head, last);
        // Its own records may have numbers below the requested one.
        fork.turn(other, "t2", "in the gap").await;
        check_like_plain_thread(other, fork.thread).await;
        let again = fork.fork(journal, fork.head).await;
        assert_eq!(
            all(journal, again.thread).await,
            all(journal, fork.thread).await
        );
    }
}

async fn bases_before_and_after_the_fork_point(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    let mut bases = Vec::new();
    for turn in ["t2", "t3"] {
        let base = Base::of(&fold(&all(journal, script.thread).await));
        journal
            .save_base(script.thread, base.clone())
            .await
            .unwrap();
        bases.push(base);
        script.turn(journal, turn, "go").await;
    }
    let heads: Vec<Seq> = bases.iter().map(|it| it.thread.head()).collect();
    // The fork has only the bases up to the fork point.
    let between = script.fork(other, Seq(heads[1].0 - 1)).await;
    let newest = async |thread, at| {
        let base = journal.base(thread, at).await.unwrap();
        assert_eq!(base, other.base(thread, at).await.unwrap());
        base
    };
    assert_eq!(newest(between.thread, None).await, Some(bases[0].clone()));
    let at_one = script.fork(other, heads[1]).await;
    assert_eq!(newest(at_one.thread, None).await, Some(bases[1].clone()));
    let mut fork = script.fork(other, script.head).await;
    // A base of the fork for shared records exists beside its parent's.
    let fork_point = fork.head;
    let own = Base::of(&fold(&all(journal, fork.thread).await));
    other.save_base(fork.thread, own.clone()).await.unwrap();
    assert_eq!(newest(fork.thread, None).await, Some(own.clone()));
    assert_eq!(newest(script.thread, None).await, Some(bases[1].clone()));
    fork.turn(other, "own", "go").await;
    let late = Base::of(&fold(&all(journal, fork.thread).await));
    other.save_base(fork.thread, late.clone()).await.unwrap();
    for (at, base) in [
        (None, Some(&late)),
        (Some(fork_point), Some(&own)),
        (Some(Seq(fork_point.0 - 1)), Some(&bases[1])),
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
    assert_eq!(opened, fold(&all(journal, fork.thread).await));
}

async fn open_text_is_in_both(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    script.append(journal, vec![item_started("t2", "i")]).await;
    script.append(journal, vec![delta("i", 0, "ab")]).await;
    let at = script.head;
    script.append(journal, vec![delta("i", 2, "cd")]).await;
    let mut early = script.fork(other, at).await;
    assert_eq!(early.head, at);
    let mut late = script.fork(other, script.head).await;
    let text = async |thread| {
        let text = deltas(&all(journal, thread).await).concat();
        assert_eq!(text, deltas(&all(other, thread).await).concat());
        text
    };
    assert_eq!(text(early.thread).await, "ab");
    assert_eq!(text(late.thread).await, "abcd");
    early.append(other, vec![delta("i", 2, "xy")]).await;
    script
        .append(journal, vec![completed("t2", "i", "abcd")])
        .await;
    assert_eq!(text(script.thread).await, "");
    assert_eq!(text(early.thread).await, "abxy");
    late.append(other, vec![saved("i", "abcd")]).await;
    late.append(other, vec![delta("i", 4, "ef")]).await;
    let mut again = late.fork(journal, late.head).await;
    assert_eq!(text(late.thread).await, "ef");
    assert_eq!(text(again.thread).await, "ef");
    again
        .append(journal, vec![completed("t2", "i", "all")])
        .await;
    journal.delete(script.thread).await.unwrap();
    journal.delete(late.thread).await.unwrap();
    assert_eq!(text(early.thread).await, "abxy");
    assert_eq!(text(again.thread).await, "");
    for thread in [early.thread, again.thread] {
        check_like_plain_thread(journal, thread).await;
    }
}

async fn settled_text_may_be_gone(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 1).await;
    let started = script.append(journal, vec![item_started("t2", "i")]).await;
    script.append(journal, vec![delta("i", 0, "ab")]).await;
    let at = script.head;
    script
        .append(journal, vec![completed("t2", "i", "ab")])
        .await;
    let mut fork = script.fork(other, at).await;
    assert!(fork.head == at || fork.head == started[0].seq);
    assert_eq!(journal.head(fork.thread).await, Ok(fork.head));
    fork.append(other, vec![renamed("on")]).await;
}

async fn a_fork_has_its_own_head(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 2).await;
    let at = Seq(script.head.0 - 1);
    let mut fork = script.fork(other, at).await;
    // A writer that knows the parent's head does not know the fork's.
    let records = script.clone().records(vec![renamed("stale")]);
    let class = Class::Power;
    let stale = journal
        .append(fork.thread, script.head, &records, class)
        .await;
    assert_eq!(stale, Err(raddle_core::ports::AppendError::Conflict));
    let ours = fork.append(other, vec![renamed("fork")]).await;
    let theirs = script.append(journal, vec![renamed("parent")]).await;
    let rest = journal.read(fork.thread, at, usize::MAX).await;
    assert_eq!(rest, Ok(ours));
    let rest = journal.read(script.thread, at.next(), usize::MAX).await;
    assert_eq!(rest, Ok(theirs));
}
