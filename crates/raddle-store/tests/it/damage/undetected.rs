//! Damage that cannot be detected, one test for each kind. `docs/damage.md` lists the same.

use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::Journal;
use raddle_store::{Archive, Salvage};
use rusqlite::Connection;

use super::{DamagedPair, checkpoint, file, key, pair};
use crate::makers::local;
use crate::records::{ThreadScript, renamed};

/// Whether `verify` finds no damage.
fn verifies(folder: &Path) -> bool {
    let archive = Archive::open(folder).unwrap().unwrap();
    let file = archive.check_file().unwrap();
    let threads = archive.threads().unwrap();
    let reports = threads.iter().map(|it| archive.verify(*it).unwrap());
    file.is_empty() && reports.into_iter().all(|it| it.damage.is_empty())
}

impl DamagedPair {
    /// Changes the file behind the journal's back.
    pub(super) fn change(&self, change: impl FnOnce(&Connection, i64)) {
        let connection = Connection::open(file(self.folder.path())).unwrap();
        let id = self.damaged.thread;
        let number = connection.query_row(
            "SELECT number FROM thread WHERE id = ?1",
            [id.as_uuid().as_bytes()],
            |row| row.get(0),
        );
        change(&connection, number.unwrap());
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_folder_put_back_to_an_earlier_state() {
    let mut pair = pair().await;
    let earlier = tempfile::tempdir().unwrap();
    copy(pair.folder.path(), earlier.path());
    let journal = local(pair.folder.path());
    pair.damaged.append(&journal, vec![renamed("later")]).await;
    drop(journal);
    assert!(verifies(pair.folder.path()));
    assert!(verifies(earlier.path()));
    let journal = local(earlier.path());
    let head = journal.head(pair.damaged.thread).await.unwrap();
    assert!(head < pair.damaged.head);
}

#[tokio::test]
async fn a_log_that_was_hit_once_it_has_been_moved_into_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t1", "one").await;
    let before = script.head;
    script.append(&journal, vec![renamed("a")]).await;
    script.append(&journal, vec![renamed("b")]).await;
    // The state that a process leaves if it is killed now.
    let damaged = tempfile::tempdir().unwrap();
    copy(folder.path(), damaged.path());
    drop(journal);
    let log = damaged.path().join("journal.sqlite-wal");
    let mut bytes = std::fs::read(&log).unwrap();
    let name = b"\"name\":\"a\"";
    let at = bytes.windows(name.len()).position(|it| it == name).unwrap();
    bytes[at + 8] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    // As long as the WAL exists, the damage is reported, and the records after it can be salvaged.
    let archive = Archive::open(damaged.path()).unwrap().unwrap();
    let problems = archive.check_file().unwrap();
    assert!(
        problems.iter().any(|it| it.contains("the log breaks off")),
        "{problems:?}"
    );
    drop(archive);
    let mut salvage = Salvage::new(damaged.path());
    assert_eq!(salvage.threads().unwrap().threads, [script.thread]);
    // A writer continues from the earlier state, and once the WAL is restarted the damage is no
    // longer visible.
    let journal = local(damaged.path());
    assert_eq!(journal.head(script.thread).await, Ok(before));
    script.head = before;
    script.append(&journal, vec![renamed("c")]).await;
    drop(journal);
    checkpoint(damaged.path());
    assert!(verifies(damaged.path()));
}

/// It looks like the remains of a writer that was killed before it acknowledged anything.
#[tokio::test]
async fn the_first_page_of_the_last_transaction_in_a_log_that_was_hit() {
    // Offsets of the frames that end a transaction.
    let ends = |log: &[u8]| -> Vec<usize> {
        (32..log.len())
            .step_by(24 + 1024)
            .filter(|at| log[at + 4..at + 8] != [0; 4])
            .collect()
    };
    // The writer runs background jobs: one that comes after the record would be damaged instead.
    for _ in 0..100 {
        let folder = tempfile::tempdir().unwrap();
        let journal = local(folder.path());
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        let before = script.head;
        let log = std::fs::read(folder.path().join("journal.sqlite-wal")).unwrap();
        let ends_before = ends(&log);
        script.append(&journal, vec![renamed("a")]).await;
        let damaged = tempfile::tempdir().unwrap();
        copy(folder.path(), damaged.path());
        drop(journal);
        let log = damaged.path().join("journal.sqlite-wal");
        let mut bytes = std::fs::read(&log).unwrap();
        if ends(&bytes).len() != ends_before.len() + 1 {
            continue;
        }
        let first = ends_before.last().unwrap() + 24 + 1024;
        bytes[first + 500] ^= 1;
        std::fs::write(&log, bytes).unwrap();
        assert!(verifies(damaged.path()));
        let journal = local(damaged.path());
        assert_eq!(journal.head(script.thread).await, Ok(before));
        return;
    }
    panic!("the writer's chores are never over");
}

#[tokio::test]
async fn the_last_text_of_an_open_item_that_vanished() {
    let pair = pair().await;
    let last = i64::try_from(pair.damaged.head.0).unwrap();
    pair.change(|connection, number| {
        let deleted = connection.execute("DELETE FROM delta WHERE at = ?1", [key(number, last)]);
        assert_eq!(deleted, Ok(1));
    });
    assert!(verifies(pair.folder.path()));
    let journal = local(pair.folder.path());
    let head = journal.head(pair.damaged.thread).await.unwrap();
    assert_eq!(head, Seq(pair.damaged.head.0 - 1));
}

#[tokio::test]
async fn a_thread_that_vanished_with_everything_it_had() {
    let pair = pair().await;
    pair.change(|connection, number| {
        let (first, last) = (key(number, 0), key(number + 1, 0) - 1);
        for table in ["event", "delta", "base", "turn", "turn_end", "item", "cut"] {
            let sql = format!("DELETE FROM {table} WHERE at BETWEEN ?1 AND ?2");
            connection.execute(&sql, [first, last]).unwrap();
        }
        for table in ["thread", "summary"] {
            let sql = format!("DELETE FROM {table} WHERE number = ?1");
            assert_eq!(connection.execute(&sql, [number]), Ok(1));
        }
    });
    assert!(verifies(pair.folder.path()));
    let journal = local(pair.folder.path());
    assert_eq!(journal.head(pair.damaged.thread).await, Ok(Seq::ZERO));
}

#[tokio::test]
async fn another_history_written_in_its_place() {
    let pair = pair().await;
    let journal = local(pair.folder.path());
    journal.delete(pair.damaged.thread).await.unwrap();
    let mut forged = ThreadScript {
        thread: pair.damaged.thread,
        ..ThreadScript::new()
    };
    forged.start(&journal, "/w").await;
    forged.turn(&journal, "t1", "what nobody ever said").await;
    drop(journal);
    assert!(verifies(pair.folder.path()));
}

#[tokio::test]
async fn an_index_of_words_that_was_hit() {
    let pair = pair().await;
    // It is derived from the records, and rebuilt when the journal is opened for writing.
    std::fs::write(pair.folder.path().join("search.sqlite"), "nonsense").unwrap();
    assert!(verifies(pair.folder.path()));
}
