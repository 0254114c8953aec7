//! Reopening: a store has everything that was stored before it was closed.

use raddle_core::ports::{Blobs, Journal, ListQuery, PageQuery, Pages};
use raddle_core::{Base, Seq, Thread};

use crate::lists::query;
use crate::records::{
    ThreadScript, begin_turn, delta, forked, item_started, record_with_blob, renamed,
};
use crate::search::pages_of;
use crate::{Store, StoreMaker};

suite!(reopening:
    everything_is_there_after_reopening,
    a_writer_continues_after_reopening,
    a_deleted_thread_stays_deleted,
);

/// Everything that a store returns of a thread and of its lists, as text.
async fn contents(journal: &impl Store, scripts: &[ThreadScript]) -> Vec<String> {
    let pages = PageQuery {
        limit: 100,
        ..PageQuery::default()
    };
    let mut contents = Vec::new();
    for script in scripts {
        let thread = script.thread;
        let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
        contents.push(format!("{records:?}"));
        contents.push(format!("{:?}", journal.head(thread).await.unwrap()));
        contents.push(format!("{:?}", journal.base(thread, None).await.unwrap()));
        let turns = journal.turns(thread, pages.clone()).await.unwrap();
        contents.push(format!("{:?}", turns.entries));
        let items = journal.items(thread, None, pages.clone()).await.unwrap();
        contents.push(format!("{:?}", items.entries));
    }
    for archived in [false, true] {
        let query = ListQuery {
            archived,
            ..query(100)
        };
        let page = journal.list(query).await.unwrap();
        contents.push(format!("{:?}", page.entries));
    }
    contents
}

async fn everything_is_there_after_reopening(maker: impl StoreMaker) {
    let journal = maker.store();
    let mut scripts = vec![ThreadScript::new(), ThreadScript::new()];
    for script in &mut scripts {
        script.start(journal, "/w").await;
        script.turn(journal, "t1", "a needle in the hay").await;
    }
    let blob = journal.put(scripts[0].thread, vec![7; 5000], "image/png".to_owned());
    let blob = blob.await.unwrap();
    scripts[0]
        .append(journal, vec![record_with_blob(&blob)])
        .await;
    let mut thread = Thread::new();
    let records = journal.read(scripts[0].thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    let base = Base::of(&thread);
    journal.save_base(scripts[0].thread, base).await.unwrap();
    // A fork, and an open turn with text that is not settled.
    let mut fork = scripts[0].fork(journal, scripts[0].head).await;
    let own = forked(fork.thread, scripts[0].thread, fork.head, 1);
    fork.append(journal, vec![own]).await;
    fork.append(journal, begin_turn("t2", "go")).await;
    fork.append(journal, vec![item_started("t2", "i")]).await;
    fork.append(journal, vec![delta("i", 0, "piece")]).await;
    scripts.push(fork);
    let before = contents(journal, &scripts).await;
    maker.settle().await;
    let found = pages_of(journal, "needle", query(10)).await;
    assert_eq!(found.len(), 3);

    let maker = maker.reopen().await;
    let journal = maker.store();
    assert_eq!(contents(journal, &scripts).await, before);
    for script in [&scripts[0], &scripts[2]] {
        let bytes = journal.get(script.thread, blob.clone()).await;
        assert_eq!(bytes, Ok(vec![7; 5000]));
    }
    maker.settle().await;
    assert_eq!(pages_of(journal, "needle", query(10)).await, found);
}

async fn a_writer_continues_after_reopening(maker: impl StoreMaker) {
    let mut script = ThreadScript::new();
    script.start(maker.store(), "/w").await;
    let bodies = vec![item_started("t", "i")];
    script.append(maker.store(), bodies).await;
    script.append(maker.store(), vec![delta("i", 0, "a")]).await;
    let maker = maker.reopen().await;
    let journal = maker.store();
    let taken = journal.take(script.thread, Some("one")).await;
    assert_eq!(taken, Ok(script.head));
    let stale = ThreadScript {
        head: Seq(script.head.0 - 1),
        ..script.clone()
    };
    let records = stale.clone().records(vec![renamed("stale")]);
    let class = raddle_core::Class::Power;
    let result = journal.append(script.thread, stale.head, &records, class);
    assert_eq!(result.await, Err(raddle_core::ports::AppendError::Conflict));
    script.append(journal, vec![delta("i", 1, "b")]).await;
    script.turn(journal, "t2", "go").await;
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
}

async fn a_deleted_thread_stays_deleted(maker: impl StoreMaker) {
    let mut script = ThreadScript::new();
    script.start(maker.store(), "/w").await;
    script.turn(maker.store(), "t", "a needle").await;
    maker.settle().await;
    maker.store().delete(script.thread).await.unwrap();
    let maker = maker.reopen().await;
    let journal = maker.store();
    assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
    assert_eq!(journal.list(query(10)).await.unwrap().entries, []);
    maker.settle().await;
    assert_eq!(pages_of(journal, "needle", query(10)).await, []);
}
