//! Deleting threads does not affect their forks.

use raddle_core::Seq;
use raddle_core::ports::{Journal, ReadError};

use crate::forks::{all, check_like_plain_thread, upto, with_turns};
use crate::{Handles, StoreMaker};

suite!(fork_deletion, on one handle and on two:
    deleting_the_parent_first,
    deleting_the_child_first,
    deleting_from_the_middle,
);

async fn deleting_the_parent_first(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 3).await;
    let mut fork = script.fork(other, Seq(script.head.0 - 3)).await;
    script.turn(journal, "t4", "go").await;
    fork.turn(other, "own", "go").await;
    let whole = all(other, fork.thread).await;
    journal.delete(script.thread).await.unwrap();
    assert_eq!(other.head(script.thread).await, Ok(Seq::ZERO));
    assert_eq!(all(other, fork.thread).await, whole);
    check_like_plain_thread(journal, fork.thread).await;
    // The fork accepts appends, and can be forked again, although its parent is deleted.
    fork.turn(other, "after", "go").await;
    let again = fork.fork(other, Seq(5)).await;
    journal.delete(fork.thread).await.unwrap();
    assert_eq!(all(journal, again.thread).await, upto(&whole, Seq(5)));
    journal.delete(again.thread).await.unwrap();
    for thread in [script.thread, fork.thread, again.thread] {
        let read = journal.read(thread, Seq::ZERO, 1).await;
        assert_eq!(read, Err(ReadError::NotFound));
    }
}

async fn deleting_the_child_first(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let mut script = with_turns(journal, 3).await;
    let mut fork = script.fork(other, script.head).await;
    fork.turn(other, "own", "go").await;
    script.turn(journal, "t4", "go").await;
    let whole = all(journal, script.thread).await;
    other.delete(fork.thread).await.unwrap();
    assert_eq!(all(journal, script.thread).await, whole);
    check_like_plain_thread(journal, script.thread).await;
    // Its id can be used for a fork again.
    let again = other.fork(script.thread, Seq(4), fork.thread).await;
    assert_eq!(again, Ok(Seq(4)));
    assert_eq!(all(journal, fork.thread).await, upto(&whole, Seq(4)));
    journal.delete(script.thread).await.unwrap();
    assert_eq!(all(journal, fork.thread).await, upto(&whole, Seq(4)));
}

async fn deleting_from_the_middle(handles: Handles<impl StoreMaker>) {
    let (journal, other) = (handles.first(), handles.second());
    let root = with_turns(journal, 2).await;
    let mut middle = root.fork(other, root.head).await;
    middle.turn(other, "middle", "go").await;
    let mut leaves = Vec::new();
    for at in [middle.head, Seq(root.head.0 + 2), Seq(4)] {
        let mut leaf = middle.fork(journal, at).await;
        leaf.turn(journal, "leaf", "go").await;
        let whole = all(journal, leaf.thread).await;
        leaves.push((leaf, whole));
    }
    journal.delete(middle.thread).await.unwrap();
    while let Some((leaf, whole)) = leaves.pop() {
        for (leaf, whole) in &leaves {
            assert_eq!(&all(journal, leaf.thread).await, whole);
            check_like_plain_thread(journal, leaf.thread).await;
        }
        assert_eq!(all(journal, leaf.thread).await, whole);
        other.delete(leaf.thread).await.unwrap();
    }
    check_like_plain_thread(journal, root.thread).await;
}
