//! What is got out of a file that SQLite cannot make sense of: true records, or none.

use std::collections::BTreeMap;
use std::path::Path;

use raddle_core::ports::{AppendError, Journal, ReadError};
use raddle_core::{Record, Seq, ThreadId};
use raddle_store::{BundleEntry, BundleReader, Extent, LocalJournal, Options, Salvage};

use super::{file, move_log};
use crate::records::{Script, completed, delta, forked, item_started, renamed};
use crate::suite::local;

const PAGE: usize = 1024;

/// Threads of several kinds, closed in good order: short ones, one with long records, a fork, open text.
async fn journal(folder: &Path) -> BTreeMap<ThreadId, Vec<Record>> {
    let journal = local(folder);
    let mut scripts = Vec::new();
    for round in 0..6_usize {
        let mut script = Script::new();
        script.start(&journal, "/w").await;
        for turn in 0..=round {
            script
                .turn(&journal, &format!("t{turn}"), "some words")
                .await;
        }
        let long = format!("{round} ").repeat(round * 1_500);
        let bodies = vec![completed("t0", "long", &long), item_started("t0", "i")];
        script.append(&journal, bodies).await;
        script.append(&journal, vec![delta("i", 0, "ab")]).await;
        scripts.push(script);
    }
    let at = Seq(9);
    let mut fork = scripts[3].fork(&journal, at).await;
    let bodies = vec![
        forked(fork.thread, scripts[3].thread, at, 1),
        renamed("the fork"),
    ];
    fork.append(&journal, bodies).await;
    scripts.push(fork);
    let mut all = BTreeMap::new();
    for script in scripts {
        let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        all.insert(script.thread, records.unwrap());
    }
    drop(journal);
    move_log(folder);
    all
}

/// What came of saving everything.
struct Saved {
    whole: usize,
    named: usize,
}

/// Saves everything that can be, and holds it against what was there.
fn save(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) -> Saved {
    let mut salvage = Salvage::new(folder);
    let inventory = salvage.threads().unwrap();
    let mut saved = Saved { whole: 0, named: 0 };
    for thread in inventory.threads {
        let records = all.get(&thread).expect("no thread is made up");
        let mut out = Vec::new();
        match salvage.export(thread, &mut out, Extent::Whole) {
            Ok(_) => {
                let found = read(&out);
                // Open text has no place in the chain: it may be lost.
                let events = |it: &&Record| matches!(it.body, raddle_core::Body::Event(_));
                let (found, records) = (found.iter().filter(events), records.iter().filter(events));
                assert_eq!(found.collect::<Vec<_>>(), records.collect::<Vec<_>>());
                saved.whole += 1;
            }
            Err(_) => saved.named += 1,
        }
        // What is sound of it is true as far as it goes.
        let mut out = Vec::new();
        if salvage.export(thread, &mut out, Extent::Sound).is_ok() {
            for record in read(&out) {
                assert!(records.contains(&record), "{record:?} was never written");
            }
        }
    }
    saved
}

fn read(file: &[u8]) -> Vec<Record> {
    let mut file = BundleReader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(entry) = file.next().unwrap() {
        if let BundleEntry::Record(record) = entry {
            records.push(*record);
        }
    }
    records
}

/// Whatever the journal still serves is true, and a write is refused or done, never lost.
async fn serves_nothing_false(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) {
    let options = Options {
        folder: folder.to_owned(),
    };
    let journal = match LocalJournal::open(&options) {
        Ok(journal) => journal,
        Err(ReadError::Corrupt { .. }) => return,
        Err(other) => panic!("{other:?}"),
    };
    for (thread, records) in all {
        match journal.read(*thread, Seq::ZERO, usize::MAX).await {
            Ok(found) => {
                let sound = found.iter().all(|record| records.contains(record));
                assert!(sound, "{thread} serves what was never written");
            }
            Err(ReadError::Corrupt { .. } | ReadError::NotFound) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    let mut script = Script::new();
    let records = script.records(vec![crate::records::started(script.thread, "/w")]);
    let class = crate::records::class_of(&records);
    match journal
        .append(script.thread, Seq::ZERO, &records, class)
        .await
    {
        Ok(_) => {
            let found = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
            let corrupt = matches!(found, Err(ReadError::Corrupt { .. }));
            assert!(corrupt || found == Ok(records), "{found:?}");
        }
        Err(AppendError::ReadOnly(_) | AppendError::Unknown(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn whatever_page_is_hit_the_others_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    assert_eq!(bytes.len() % PAGE, 0);
    let pages = bytes.len() / PAGE;
    assert!(pages > 30, "{pages}");
    let (mut whole, mut named) = (0, 0);
    for page in 0..pages {
        let mut hit = bytes.clone();
        hit[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(file(folder.path()), &hit).unwrap();
        let saved = save(folder.path(), &all);
        // One page holds rows of a few threads, or of one long record, and all others are saved.
        assert!(saved.whole + 3 >= all.len(), "page {page}: {}", saved.whole);
        whole += saved.whole;
        named += saved.named;
        serves_nothing_false(folder.path(), &all).await;
        remove_log(folder.path());
    }
    let every = pages * all.len();
    assert!(
        whole * 100 > every * 80,
        "{whole} of {every} whole, {named} named"
    );
}

#[tokio::test]
async fn whatever_bit_of_the_first_page_is_hit_every_thread_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    for at in (0..PAGE).step_by(13) {
        let mut hit = bytes.clone();
        hit[at] ^= 1 << (at % 8);
        std::fs::write(file(folder.path()), &hit).unwrap();
        let saved = save(folder.path(), &all);
        assert_eq!(saved.whole, all.len(), "byte {at}");
    }
}

fn remove_log(folder: &Path) {
    for end in ["-wal", "-shm"] {
        let mut path = file(folder).into_os_string();
        path.push(end);
        // It may not be there.
        let _ = std::fs::remove_file(path);
    }
}
