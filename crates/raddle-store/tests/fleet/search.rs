//! Search with text in the index, and with text that waits for it.

use std::time::Duration;

use raddle_core::ThreadId;
use raddle_core::ports::{Journal, ListQuery, Pages, ReadError};
use raddle_store::FleetJournal;
use store_suite::StoreMaker;
use store_suite::records::{ThreadScript, forked, renamed};

use crate::lists::BACKLOG;
use crate::maker::{FleetMaker, IndexedMaker, open};
use crate::sql_session::SqlSession;

/// Parts of the suite that search, with all text in the index.
mod indexed {
    use super::IndexedMaker as Maker;

    mod fork_views {
        store_suite::fork_views!();
    }
    mod scope {
        store_suite::scope!();
    }
    mod search {
        store_suite::search!();
    }
}

/// Blocks of other threads that have the trigrams of each block, so that no text is rare.
const COMMON: &str = "
    INSERT INTO text_blocks (log, upto, seqs, texts, grams)
    SELECT gen_random_uuid(), 1, '{1}', '{x}', grams
    FROM text_blocks, generate_series(1, 1000)";

async fn found(journal: &impl Pages, text: &str) -> Vec<ThreadId> {
    let mut query = ListQuery {
        limit: 2,
        ..ListQuery::default()
    };
    let mut threads = Vec::new();
    loop {
        let page = journal
            .search(text.to_owned(), query.clone())
            .await
            .unwrap();
        threads.extend(page.entries.iter().map(|it| it.thread));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return threads;
        }
    }
}

/// A thread whose text has other words from turn to turn, and a fork that begins between them.
struct Family {
    parent: ThreadScript,
    fork: ThreadScript,
}

impl Family {
    async fn new(journal: &FleetJournal) -> Self {
        let mut parent = ThreadScript::new();
        parent.start(journal, "/w").await;
        parent.turn(journal, "1", "a needle").await;
        parent.turn(journal, "2", "a spindle").await;
        let at = parent.head;
        let late = renamed("a thimble");
        parent.append(journal, vec![late]).await;
        let mut fork = parent.fork(journal, at).await;
        let own = vec![
            forked(fork.thread, parent.thread, at, 0),
            renamed("a bobbin"),
        ];
        fork.now = 90_000;
        fork.append(journal, own).await;
        Self { parent, fork }
    }

    async fn check(&self, journal: &FleetJournal, has_parent: bool, context: &str) {
        let (parent, fork) = (self.parent.thread, self.fork.thread);
        for (text, expected) in [
            ("needle", vec![fork, parent]),
            ("Spindle", vec![fork, parent]),
            ("thimble", vec![parent]),
            ("bobbin", vec![fork]),
            ("needle spindle", vec![]),
        ] {
            let expected = expected.into_iter().filter(|it| has_parent || *it == fork);
            let expected: Vec<ThreadId> = expected.collect();
            assert_eq!(found(journal, text).await, expected, "{context}: {text}");
        }
    }
}

#[tokio::test]
async fn a_search_finds_the_same_before_and_after_text_is_indexed() {
    let maker = FleetMaker::fresh().await;
    let journal = maker.store();
    let session = SqlSession::open(maker.schema()).await;
    let family = Family::new(journal).await;
    family.check(journal, true, "all text waits").await;
    journal.index_texts().await.unwrap();
    assert_eq!(session.value::<i64>("SELECT count(*) FROM texts").await, 0);
    family.check(journal, true, "all text is indexed").await;
    session.run(COMMON).await;
    family.check(journal, true, "no text is rare").await;
    session
        .run("DELETE FROM text_blocks WHERE texts = '{x}'")
        .await;
    session.run(BACKLOG).await;
    family.check(journal, true, "too much text waits").await;
    // Text without a tenant stays, and other text is indexed all the same.
    let mut late = ThreadScript::new();
    late.start(journal, "/w").await;
    late.append(journal, vec![renamed("a ribbon")]).await;
    journal.index_texts().await.unwrap();
    let waiting = "SELECT count(*) FROM texts WHERE text <> 'x'";
    assert_eq!(session.value::<i64>(waiting).await, 0);
    assert_eq!(found(journal, "ribbon").await, [late.thread]);
}

/// The block of a deleted thread is divided: what its fork has stays, and nothing else.
#[tokio::test]
async fn a_deletion_leaves_the_text_of_forks_only() {
    for is_indexed in [false, true] {
        let maker = FleetMaker::fresh().await;
        let journal = maker.store();
        let session = SqlSession::open(maker.schema()).await;
        let family = Family::new(journal).await;
        if is_indexed {
            journal.index_texts().await.unwrap();
        }
        journal.delete(family.parent.thread).await.unwrap();
        family.check(journal, false, "text waits again").await;
        journal.index_texts().await.unwrap();
        family.check(journal, false, "text is indexed").await;
        let all = "SELECT coalesce(string_agg(text, ',' ORDER BY text), '') FROM (
                       SELECT text FROM texts
                       UNION ALL SELECT unnest(texts) FROM text_blocks) AS it";
        let left = session.value::<String>(all).await;
        let kept = "a bobbin,a needle,a spindle,so be it,so be it";
        assert_eq!(left, kept, "{is_indexed}");
        journal.delete(family.fork.thread).await.unwrap();
        assert_eq!(session.value::<String>(all).await, "", "{is_indexed}");
    }
}

/// Two nodes that index at the same time divide the text.
#[tokio::test]
async fn nodes_index_each_text_once() {
    let maker = FleetMaker::fresh().await;
    let journal = maker.store();
    let other = maker.second_handle().await;
    let session = SqlSession::open(maker.schema()).await;
    let mut expected = Vec::new();
    for at in 0..40 {
        let mut script = ThreadScript::new();
        script.now = 1_000 * at;
        script.start(journal, "/w").await;
        let names = (0..20).map(|at| renamed(&format!("needle {at}"))).collect();
        script.append(journal, names).await;
        expected.insert(0, script.thread);
    }
    let (first, second) = tokio::join!(journal.index_texts(), other.index_texts());
    assert_eq!((first, second), (Ok(()), Ok(())));
    let texts = "SELECT coalesce(sum(cardinality(texts)), 0)::bigint FROM text_blocks";
    assert_eq!(session.value::<i64>(texts).await, 800);
    assert_eq!(session.value::<i64>("SELECT count(*) FROM texts").await, 0);
    assert_eq!(found(journal, "needle").await, expected);
}

/// Text that another transaction has locked is not waited for, and a move that fails has no effect.
#[tokio::test]
async fn text_that_cannot_be_moved_waits() {
    let maker = FleetMaker::fresh().await;
    let options = raddle_store::FleetOptions {
        statement_max: Duration::from_secs(2),
        ..maker.options().clone()
    };
    let journal = open(&options).await;
    let session = SqlSession::open(maker.schema()).await;
    let family = Family::new(&journal).await;
    session.run("BEGIN; SELECT 1 FROM texts FOR UPDATE").await;
    assert_eq!(journal.index_texts().await, Ok(()));
    session.run("ROLLBACK").await;
    family.check(&journal, true, "the text is locked").await;
    session
        .run("BEGIN; LOCK TABLE text_blocks IN SHARE MODE")
        .await;
    let indexed = journal.index_texts().await;
    assert!(
        matches!(indexed, Err(ReadError::Unavailable(_))),
        "{indexed:?}"
    );
    session.run("ROLLBACK").await;
    let blocks = "SELECT count(*) FROM text_blocks";
    assert_eq!(session.value::<i64>(blocks).await, 0);
    family.check(&journal, true, "the index is locked").await;
    journal.index_texts().await.unwrap();
    assert_ne!(session.value::<i64>(blocks).await, 0);
    family.check(&journal, true, "nothing is locked").await;
}

/// Words of one tenant are in no entry of the index that another tenant's searches read.
#[tokio::test]
async fn tenants_share_no_entries_of_the_index() {
    let maker = FleetMaker::fresh().await;
    let journal = maker.store();
    let session = SqlSession::open(maker.schema()).await;
    for tenant in [None, Some("mill"), Some("yard")] {
        let mut script = ThreadScript::new();
        let by = raddle_core::ports::ListScope {
            tenant: tenant.map(str::to_owned),
            principal: None,
        };
        script.start_by(journal, "/w", &by).await;
        script.append(journal, vec![renamed("a needle")]).await;
    }
    journal.index_texts().await.unwrap();
    let shared = "SELECT count(*) FROM text_blocks a JOIN text_blocks b
                  ON a.log < b.log AND a.grams && b.grams";
    assert_eq!(session.value::<i64>(shared).await, 0);
}
