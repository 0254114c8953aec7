//! What the ledger must notice, it notices.

use raddle_core::{Class, Event, Input, Renamed, Settings};
use raddle_store::Options;

use super::*;
use crate::live::{LiveThread, Pace, now};
use crate::rng::Rng;
use crate::turn::{self, Grain};

struct LedgerHome {
    _folder: tempfile::TempDir,
    store: LocalJournal,
    id: ThreadId,
    ledger: Ledger,
}

/// A thread with one turn, and all that was told of it.
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
    let found = home.ledger.check(&home.store).await;
    format!("{:#}", found.expect_err("it is noticed"))
}

#[test]
fn what_was_told_and_is_there_is_well() {
    run(async {
        let mut home = home().await;
        let there = home.ledger.check(&home.store).await.unwrap();
        assert_eq!(there, [home.id]);
        assert!(home.ledger.records > 5);
    });
}

#[test]
fn a_record_that_was_told_and_is_not_there() {
    run(async {
        let mut home = home().await;
        let lost = renamed(home.store.head(home.id).await.unwrap().next());
        home.ledger.stored(home.id, &[lost], Class::Process);
        let complaint = complaint(&mut home).await;
        assert!(complaint.contains("was told and is gone"), "{complaint}");
    });
}

#[test]
fn a_record_that_is_not_what_was_told() {
    run(async {
        let mut home = home().await;
        home.ledger
            .stored(home.id, &[renamed(Seq(2))], Class::Process);
        let complaint = complaint(&mut home).await;
        assert!(complaint.contains("is not what was told"), "{complaint}");
    });
}

#[test]
fn what_was_stored_and_not_told_counts_from_then_on() {
    run(async {
        let mut home = home().await;
        let head = home.store.head(home.id).await.unwrap();
        let records = [renamed(head.next())];
        let append = home.store.append(home.id, head, &records, Class::Process);
        append.await.unwrap();
        home.ledger.check(&home.store).await.unwrap();
        let account = &home.ledger.threads[&home.id];
        assert!(account.told.contains_key(&head.next()));
    });
}

#[test]
fn a_thread_that_was_deleted_and_is_there() {
    run(async {
        let mut home = home().await;
        home.ledger.take(WriterLine::Deleted(home.id));
        let complaint = complaint(&mut home).await;
        assert!(
            complaint.contains("was deleted and is there"),
            "{complaint}"
        );
    });
}

#[test]
fn a_thread_that_was_told_of_and_is_gone() {
    run(async {
        let mut home = home().await;
        home.store.delete(home.id).await.unwrap();
        let told = complaint(&mut home).await;
        assert!(told.contains("it is gone"), "{told}");
        // Whoever said before that it would go is believed.
        home.ledger.take(WriterLine::Deleting(home.id));
        let there = home.ledger.check(&home.store).await.unwrap();
        assert!(there.is_empty());
    });
}

#[test]
fn safety_that_is_told_while_syncs_fail() {
    let mut ledger = Ledger::default();
    let id = ThreadId::mint();
    ledger.stored(id, &[renamed(Seq(1))], Class::Power);
    ledger.failed(&AppendError::Unknown(String::new()), Class::Power);
    ledger.stored(id, &[renamed(Seq(2))], Class::Process);
    assert_eq!(ledger.power_after_doubt, 0);
    ledger.stored(id, &[renamed(Seq(3))], Class::Power);
    assert_eq!(ledger.power_after_doubt, 1);
}
