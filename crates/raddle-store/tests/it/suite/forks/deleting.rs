//! Deleting threads does not affect their forks.

use raddle_core::Seq;
use raddle_core::ports::{Journal, Pages, ReadError};

use super::{all, check_like_plain_thread, upto, with_turns};

crate::suite::for_each_journal!(
    deleting_the_parent_first,
    deleting_the_child_first,
    deleting_from_the_middle,
);

async fn deleting_the_parent_first(journal: impl Journal + Pages) {
    let mut script = with_turns(&journal, 3).await;
    let mut fork = script.fork(&journal, Seq(script.head.0 - 3)).await;
    script.turn(&journal, "t4", "go").await;
    fork.turn(&journal, "own", "go").await;
    let whole = all(&journal, fork.thread).await;
    journal.delete(script.thread).await.unwrap();
    assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
    assert_eq!(all(&journal, fork.thread).await, whole);
    check_like_plain_thread(&journal, fork.thread).await;
    // The fork accepts appends, and can be forked again, although its parent is deleted.
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
    check_like_plain_thread(&journal, script.thread).await;
    // Its id can be used for a fork again.
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
            check_like_plain_thread(&journal, leaf.thread).await;
        }
        assert_eq!(all(&journal, leaf.thread).await, whole);
        journal.delete(leaf.thread).await.unwrap();
    }
    check_like_plain_thread(&journal, root.thread).await;
}
