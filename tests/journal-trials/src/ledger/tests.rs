//! The ledger detects every violation.

use raddle_core::{Class, Event, Input, Renamed, Settings};
use raddle_store::Options;
use support::Rng;

use super::*;
use crate::live::{LiveThread, Pace, now};
use crate::turn::{self, Grain};

struct LedgerHome {
    _folder: tempfile::TempDir,
    store: LocalJournal,
    id: ThreadId,
    ledger: Ledger,
}

/// Creates a thread with one turn, and the ledger of its acknowledged records.
async fn home() -> LedgerHome {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalJournal::open(&Options {
        folder: folder.path().to_owned(),
    })
    .unwrap();
    let id = ThreadId::mint();
    let mut ledger = Ledger::default();
    let settings = Settings::default();
    let live = LiveThread::start(&store, id, "one", settings, Pace::Rounds, &mut ledger);
    let mut live = live.await.unwrap();
    let input = vec![Input::text("hello")];
    let mut rng = Rng::new(1);
    let play = turn::play(
        &mut live,
        input,
        Vec::new(),
        Grain::Fine,
        &mut rng,
        &mut ledger,
    );
    play.await.unwrap();
    drop(live);
    LedgerHome {
        _folder: folder,
        store,
        id,
        ledger,
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(test);
}

fn renamed(seq: Seq) -> Record {
    let renamed = Renamed {
        name: None,
        principal: None,
    };
    Record {
        seq,
        at: now(),
        body: Event::Renamed(renamed).into(),
    }
}

async fn complaint(home: &mut LedgerHome) -> String {
    let result = home.ledger.check(&home.store).await;
    format!("{:#}", result.expect_err("it is noticed"))
}

#[test]
fn acknowledged_and_stored_records_pass() {
    run(async {
        let mut home = home().await;
        let threads = home.ledger.check(&home.store).await.unwrap();
        assert_eq!(threads, [home.id]);
        assert!(home.ledger.records > 5);
    });
}

#[test]
fn a_missing_acknowledged_record_is_reported() {
    run(async {
        let mut home = home().await;
        let lost = renamed(home.store.head(home.id).await.unwrap().next());
        home.ledger.stored(home.id, &[lost], Class::Process);
        let complaint = complaint(&mut home).await;
        assert!(complaint.contains("was told and is gone"), "{complaint}");
    });
}

#[test]
fn a_changed_record_is_reported() {
    run(async {
        let mut home = home().await;
        home.ledger
            .stored(home.id, &[renamed(Seq(2))], Class::Process);
        let complaint = complaint(&mut home).await;
        assert!(complaint.contains("is not what was told"), "{complaint}");
    });
}

#[test]
fn unacknowledged_records_count_once_found() {
    run(async {
        let mut home = home().await;
        let head = home.store.head(home.id).await.unwrap();
        let records = [renamed(head.next())];
        let append = home.store.append(home.id, head, &records, Class::Process);
        append.await.unwrap();
        home.ledger.check(&home.store).await.unwrap();
        let account = &home.ledger.threads[&home.id];
        assert!(account.acknowledged.contains_key(&head.next()));
    });
}

#[test]
fn a_deleted_thread_that_exists_is_reported() {
    run(async {
        let mut home = home().await;
        home.ledger.record(WriterLine::Deleted(home.id));
        let complaint = complaint(&mut home).await;
        assert!(
            complaint.contains("was deleted and is there"),
            "{complaint}"
        );
    });
}

#[test]
fn a_missing_thread_is_reported() {
    run(async {
        let mut home = home().await;
        home.store.delete(home.id).await.unwrap();
        let complaint = complaint(&mut home).await;
        assert!(complaint.contains("it is gone"), "{complaint}");
        // After the announcement of its deletion, a missing thread is accepted.
        home.ledger.record(WriterLine::Deleting(home.id));
        let threads = home.ledger.check(&home.store).await.unwrap();
        assert!(threads.is_empty());
    });
}

#[test]
fn power_acknowledgements_after_a_failed_sync_are_counted() {
    let mut ledger = Ledger::default();
    let id = ThreadId::mint();
    ledger.stored(id, &[renamed(Seq(1))], Class::Power);
    ledger.failed(&AppendError::Unknown(String::new()), Class::Power);
    ledger.stored(id, &[renamed(Seq(2))], Class::Process);
    assert_eq!(ledger.power_after_doubt, 0);
    ledger.stored(id, &[renamed(Seq(3))], Class::Power);
    assert_eq!(ledger.power_after_doubt, 1);
}
