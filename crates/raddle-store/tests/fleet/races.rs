//! Forks, deletions, bases and pages at the same time.

use std::time::Duration;

use raddle_core::ports::{Journal, PageQuery, Pages, ReadError};
use raddle_core::{Base, Seq, Thread, ThreadId};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{ThreadScript, renamed};

use crate::maker::{open, options};
use crate::proxy::{Fault, Proxy};
use crate::server;
use crate::sql_session::SqlSession;

async fn begin() -> (FleetJournal, SqlSession, ThreadScript) {
    let options = options(server::shared());
    let journal = open(&options).await;
    let session = SqlSession::open(&options.schema).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.append(&journal, vec![renamed("before")]).await;
    (journal, session, script)
}

/// Locks the row of a thread.
async fn lock(session: &SqlSession, thread: ThreadId) {
    let id = thread.as_uuid();
    let lock = format!("BEGIN; SELECT 1 FROM threads WHERE id = '{id}' FOR UPDATE");
    session.run(&lock).await;
}

#[tokio::test]
async fn a_fork_has_the_list_entry_of_its_moment() {
    let (journal, session, script) = begin().await;
    lock(&session, script.thread).await;
    session
        .run("UPDATE summaries SET body = replace(body, 'before', 'now')")
        .await;
    let to = ThreadId::mint();
    let (forked, ()) = tokio::join!(journal.fork(script.thread, script.head, to), async {
        session.wait_for_blocked().await;
        session.run("COMMIT").await;
    });
    assert_eq!(forked, Ok(script.head));
    let body = format!("SELECT body FROM summaries WHERE id = '{}'", to.as_uuid());
    let body: String = session.value(&body).await;
    assert!(body.contains("\"name\":\"now\""), "{body}");
}

#[tokio::test]
async fn a_fork_that_the_database_aborts_is_repeated() {
    let (journal, session, script) = begin().await;
    let to = ThreadId::mint();
    // The other session has the row of the fork, and then wants that of the thread.
    session.run("SET deadlock_timeout = '30s'; BEGIN").await;
    let row = format!(
        "INSERT INTO threads (id, log, live, head, tail, link, fence, family)
         VALUES ('{id}', '{id}', false, 0, 0, '', 0, '{id}')",
        id = to.as_uuid()
    );
    session.run(&row).await;
    let (forked, ()) = tokio::join!(journal.fork(script.thread, script.head, to), async {
        session.wait_for_blocked().await;
        let id = script.thread.as_uuid();
        let lock = format!("SELECT 1 FROM threads WHERE id = '{id}' FOR UPDATE");
        session.run(&lock).await;
        session.run("ROLLBACK").await;
    });
    assert_eq!(forked, Ok(script.head));
}

#[tokio::test]
async fn a_base_does_not_outlive_its_thread() {
    let (journal, session, script) = begin().await;
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in records.unwrap() {
        thread.apply(&record);
    }
    session.run("BEGIN; DELETE FROM threads").await;
    let save = async {
        let saved = journal.save_base(script.thread, Base::of(&thread)).await;
        assert_eq!(saved, Ok(()));
    };
    let commit = async {
        session.wait_for_blocked().await;
        session.run("COMMIT").await;
    };
    tokio::join!(save, commit);
    let count: i64 = session.value("SELECT count(*) FROM bases").await;
    assert_eq!(count, 0);
}

/// Rows of one deleted thread are locked, and another node works on a second.
#[tokio::test]
async fn a_removal_that_fails_delays_no_other() {
    let options = FleetOptions {
        statement_max: Duration::from_secs(2),
        ..options(server::shared())
    };
    let journal = open(&options).await;
    let session = SqlSession::open(&options.schema).await;
    let mut scripts = [(); 3].map(|()| ThreadScript::new());
    let mut logs = Vec::new();
    for script in &mut scripts {
        script.start(&journal, "/w").await;
        logs.push(session.log(script.thread).await);
    }
    let id = "00000000-0000-0000-0000-000000000001";
    let removal = format!("INSERT INTO removals VALUES ('{id}', '{}')", logs[0]);
    session.run(&removal).await;
    let lock = format!(
        "BEGIN; SELECT 1 FROM removals FOR UPDATE;
         SELECT 1 FROM records WHERE log = '{}' FOR UPDATE",
        logs[1]
    );
    session.run(&lock).await;
    for script in &scripts[1..] {
        assert_eq!(journal.delete(script.thread).await, Ok(()));
    }
    let rows = |log| format!("SELECT count(*) FROM records WHERE log = '{log}'");
    for (log, expected) in logs.iter().zip([2, 2, 0]) {
        let count: i64 = session.value(&rows(log)).await;
        assert_eq!(count, expected);
    }
    // The next deletion removes what is left.
    session.run("ROLLBACK").await;
    assert_eq!(journal.delete(scripts[0].thread).await, Ok(()));
    let count: i64 = session.value("SELECT count(*) FROM records").await;
    assert_eq!(count, 0);
    let count: i64 = session.value("SELECT count(*) FROM removals").await;
    assert_eq!(count, 0);
}

#[tokio::test]
async fn a_page_of_a_thread_that_is_deleted_meanwhile_is_not_found() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = options(&proxy.address(address));
    let journal = open(&options).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t", "go").await;
    let other = open(&FleetOptions {
        address: address.to_owned(),
        ..options
    })
    .await;
    // Between the marks of the page and its records.
    proxy.arm(Fault::Hold, "records.seq = it.seq");
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let (turns, ()) = tokio::join!(journal.turns(script.thread, query), async {
        proxy.fired().await;
        other.delete(script.thread).await.unwrap();
        proxy.go_on();
    });
    assert_eq!(turns, Err(ReadError::NotFound));
}
