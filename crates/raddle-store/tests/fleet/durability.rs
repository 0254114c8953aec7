//! Durability of a commit: events wait for the standby, deltas do not, and a success that did not
//! wait is none.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, Durability, Journal, ReadError};
use raddle_core::{Class, Record, Seq, ThreadId};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::{ThreadScript, delta, item_started, released, renamed};

use crate::maker::{open, options};
use crate::proxy::Proxy;
use crate::server::{self, OwnServer};

/// Starts a thread with an open item.
async fn started(journal: &FleetJournal) -> ThreadScript {
    let mut script = ThreadScript::new();
    script.start(journal, "/w").await;
    let bodies = vec![item_started("t", "i")];
    script.append(journal, bodies).await;
    script.append(journal, vec![delta("i", 0, "a")]).await;
    script
}

/// Makes every synchronous commit wait for a standby that does not exist.
async fn wait_for_nobody(server: &OwnServer, journal: &FleetJournal) {
    let setting = "ALTER SYSTEM SET synchronous_standby_names = 'nobody'";
    server.sql(setting).await;
    server.sql("SELECT pg_reload_conf()").await;
    // The setting takes effect a moment later.
    for _ in 0..1000 {
        let mut script = ThreadScript::new();
        let after = script.head;
        let bodies = vec![store_suite::records::started(script.thread, "/w")];
        let records = script.records(bodies);
        let appended = journal.append(script.thread, after, &records, Class::Power);
        if appended.await.is_err() {
            return;
        }
    }
    panic!("the server does not wait for the standby");
}

#[tokio::test]
async fn a_commit_that_waits_for_a_standby() {
    let server = OwnServer::start().await;
    let address = server.address();
    // Neither the role nor the address may weaken the commits of events.
    server
        .sql("ALTER ROLE raddle SET synchronous_commit = off")
        .await;
    server
        .sql("ALTER ROLE raddle SET default_transaction_isolation = 'serializable'")
        .await;
    // Nor may they hide the warning about a commit that did not wait.
    server
        .sql("ALTER ROLE raddle SET client_min_messages = error")
        .await;
    let proxy = Proxy::start(server::port(&address)).await;
    let weak = format!(
        "{} options='-c synchronous_commit=off'",
        proxy.address(&address)
    );
    let options = FleetOptions {
        statement_max: Duration::from_millis(1500),
        ..options(&weak)
    };
    let journal = open(&options).await;
    let mut first = started(&journal).await;
    let mut second = started(&journal).await;
    let mut third = started(&journal).await;
    let fourth = started(&journal).await;
    // Another handle writes to it below.
    third.append(&journal, vec![released()]).await;
    wait_for_nobody(&server, &journal).await;

    // An event waits, and its outcome is unknown. A delta does not wait.
    let records = first.clone().records(vec![renamed("waits")]);
    let waits = append_when_connected(&journal, &first, &records).await;
    assert!(matches!(waits, Err(AppendError::Unknown(_))), "{waits:?}");
    second.append(&journal, vec![delta("i", 1, "b")]).await;
    let records = second.clone().records(vec![renamed("waits too")]);
    let waits = append_when_connected(&journal, &second, &records).await;
    assert!(matches!(waits, Err(AppendError::Unknown(_))), "{waits:?}");

    // An event waits too if it must survive only the process: a lost one would leave a hole.
    let records = fourth.clone().records(vec![item_started("t", "j")]);
    let waits = journal.append(fourth.thread, fourth.head, &records, Class::Process);
    let waits = waits.await;
    assert!(
        matches!(
            waits,
            Err(AppendError::Unknown(_) | AppendError::Unavailable(_))
        ),
        "{waits:?}"
    );

    // The written rows cannot be trusted yet, so the doubt stays.
    let head = journal.head(first.thread).await;
    assert!(matches!(head, Err(ReadError::Unavailable(_))), "{head:?}");

    // Without records, an append shows whether one with records would succeed.
    let nothing = |class| journal.append(ThreadId::mint(), Seq::ZERO, &[], class);
    let event = nothing(Class::Power).await;
    assert!(
        matches!(event, Err(AppendError::Unavailable(_))),
        "{event:?}"
    );
    assert_eq!(nothing(Class::Process).await, Ok(Seq::ZERO));

    // The operator cancels the wait: the server answers with success and a warning.
    let patient = FleetOptions {
        statement_max: Duration::from_secs(60),
        ..options.clone()
    };
    // Opening writes nothing, because the tables exist.
    let patient = open(&patient).await;
    let records = third.clone().records(vec![renamed("canceled")]);
    let append = patient.append(third.thread, third.head, &records, Class::Power);
    let canceled = cancel_until(&server, append).await;
    assert!(
        matches!(canceled, Err(AppendError::Unknown(_))),
        "{canceled:?}"
    );

    // No statement of ours was canceled by us.
    assert_eq!(proxy.cancel_requests(), 0);
    server
        .sql("ALTER SYSTEM RESET synchronous_standby_names")
        .await;
    server.sql("SELECT pg_reload_conf()").await;
    for (journal, script) in [(&journal, &mut first), (&patient, &mut third)] {
        let mut head = journal.head(script.thread).await;
        let start = Instant::now();
        while head.is_err() && start.elapsed() < WAIT_MAX {
            tokio::task::yield_now().await;
            head = journal.head(script.thread).await;
        }
        // Its commit was complete but for the standby.
        assert_eq!(head, Ok(script.head.next()));
        script.head = script.head.next();
        script.append(journal, vec![renamed("next")]).await;
        let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        let numbers: Vec<u64> = records.unwrap().iter().map(|it| it.seq.0).collect();
        assert_eq!(numbers, (1..=script.head.0).collect::<Vec<_>>());
    }
}

/// Time after which the journal has connected again. It pauses after a timeout.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Appends records once the journal does not pause.
async fn append_when_connected(
    journal: &FleetJournal,
    script: &ThreadScript,
    records: &[Record],
) -> Result<Seq, AppendError> {
    let start = Instant::now();
    loop {
        let appended = journal.append(script.thread, script.head, records, Class::Power);
        match appended.await {
            Err(AppendError::Unavailable(_)) if start.elapsed() < WAIT_MAX => {
                tokio::task::yield_now().await;
            }
            result => return result,
        }
    }
}

const CANCEL: &str = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                      WHERE wait_event = 'SyncRep'";

/// Cancels the waits of all statements again and again until a future ends. Sessions of connections
/// that were dropped wait too.
async fn cancel_until<T>(server: &OwnServer, end: impl Future<Output = T>) -> T {
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            result = &mut end => return result,
            _ = server.sql(CANCEL) => {}
        }
    }
}

/// A pooler may drop the options of a connection.
#[tokio::test]
async fn a_connection_for_events_that_would_not_wait_is_refused() {
    let address = server::shared();
    let proxy = Proxy::start(server::port(address)).await;
    let options = options(&proxy.address(address));
    open(&options).await;
    proxy.rewrite("synchronous_commit=on", "synchronous_commit=no");
    let weak = FleetJournal::open(&options).await;
    let Err(ReadError::Unusable(what)) = weak else {
        panic!("{weak:?}");
    };
    assert!(what.contains("synchronous_commit"), "{what}");
}

/// Starts a program that receives the log of the server as a synchronous standby does. It ends with the
/// server, if not before.
fn receive_log(server: &OwnServer, folder: &Path) -> Child {
    let mut receiver = Command::new("/usr/lib/postgresql/15/bin/pg_receivewal");
    receiver
        .arg("--dbname")
        .arg(server.address())
        .arg("--directory")
        .arg(folder)
        .args(["--synchronous", "--no-loop", "--no-password"]);
    receiver.spawn().unwrap()
}

/// Probes the journal until it reports a durability.
async fn report(journal: &FleetJournal, durability: Durability) {
    let start = Instant::now();
    while journal.durability() != durability {
        assert!(start.elapsed() < WAIT_MAX, "{:?}", journal.durability());
        // It fails while the server waits for a standby that has not connected.
        let probe = journal.append(ThreadId::mint(), Seq::ZERO, &[], Class::Power);
        let _ = probe.await;
    }
}

#[tokio::test]
async fn the_journal_reports_whether_commits_wait_for_a_standby() {
    let server = OwnServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&options(&server.address())).await;
    assert_eq!(journal.durability(), Durability::Relaxed);
    let mut receiver = receive_log(&server, folder.path());
    server
        .sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        .await;
    server.sql("SELECT pg_reload_conf()").await;
    report(&journal, Durability::Synchronous).await;
    assert_eq!(
        open(&options(&server.address())).await.durability(),
        Durability::Synchronous
    );
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    server
        .sql("ALTER SYSTEM RESET synchronous_standby_names")
        .await;
    server.sql("SELECT pg_reload_conf()").await;
    report(&journal, Durability::Relaxed).await;
}
