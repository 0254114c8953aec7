//! Limits of lists and searches.

use std::time::Duration;

use raddle_core::ports::{ListQuery, Pages};
use raddle_store::FleetOptions;
use store_suite::records::ThreadScript;

use crate::maker::{open, options};
use crate::proxy::{Fault, Proxy};
use crate::server;
use crate::sql_session::SqlSession;

/// Threads that no filter for a provider passes.
const THREADS: &str = "
    INSERT INTO threads (id, log, live, head, tail, link, fence, family)
    SELECT gen_random_uuid(), gen_random_uuid(), true, 1, 1, '', 0, gen_random_uuid()
    FROM generate_series(1, 5500);
    INSERT INTO summaries (id, tenant, visibility, recency_at, created_at, updated_at, used, cwd,
        source, body)
    SELECT id, '', 0, row_number() OVER (), 1, 1, true, '/w', '\"cli\"', '{}' FROM threads";

/// Texts that wait for the index, of threads that no list has.
pub const BACKLOG: &str = "
    INSERT INTO texts (log, seq, text) SELECT gen_random_uuid(), 1, 'x'
    FROM generate_series(1, 4000)";

/// A list with a filter ends early, instead of looking at all threads of the tenant.
#[tokio::test]
async fn a_filtered_list_looks_at_a_limited_number_of_threads() {
    let options = options(server::shared());
    let journal = open(&options).await;
    let session = SqlSession::open(&options.schema).await;
    session.run(THREADS).await;
    let mut query = ListQuery {
        providers: vec!["other".to_owned()],
        limit: 10,
        ..ListQuery::default()
    };
    let page = journal.list(query.clone()).await.unwrap();
    assert_eq!(page.entries, []);
    assert!(page.next.is_some());
    query.cursor = page.next;
    let page = journal.list(query).await.unwrap();
    assert_eq!((page.entries, page.next), (Vec::new(), None));
}

#[tokio::test]
async fn a_search_that_the_server_cancels_goes_on_from_its_cursor() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = FleetOptions {
        statement_max: Duration::from_secs(2),
        ..options(&proxy.address(address))
    };
    let journal = open(&options).await;
    let session = SqlSession::open(&options.schema).await;
    // With so much text that waits, a search looks at one thread after another.
    session.run(BACKLOG).await;
    let mut expected = Vec::new();
    for at in 0..20 {
        let mut script = ThreadScript::new();
        script.now = 1_000 * at;
        script.start(&journal, "/w").await;
        script.turn(&journal, "t", "a needle").await;
        expected.insert(0, script.thread);
    }
    let mut query = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    let mut matches = Vec::new();
    // The second statement begins after the first threads.
    proxy.arm(Fault::Hold, "s.id) < (");
    let search = journal.search("needle".to_owned(), query.clone());
    let cancel = async {
        proxy.fired().await;
        session.run("BEGIN; LOCK TABLE texts").await;
        proxy.go_on();
    };
    let (page, ()) = tokio::join!(search, cancel);
    let page = page.unwrap();
    assert!(page.next.is_some());
    assert!(!page.entries.is_empty());
    session.run("ROLLBACK").await;
    matches.extend(page.entries.iter().map(|it| it.thread));
    query.cursor = page.next;
    while query.cursor.is_some() {
        let page = journal.search("needle".to_owned(), query.clone());
        let page = page.await.unwrap();
        matches.extend(page.entries.iter().map(|it| it.thread));
        query.cursor = page.next;
    }
    assert_eq!(matches, expected);
}
