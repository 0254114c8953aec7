//! Files beside the local journal that nothing names any more, or never did.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use raddle_core::Blob;
use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_store::LocalJournal;
use rusqlite::Connection;

use crate::records::{ThreadScript, completed, renamed};
use crate::suite::blobs::naming;
use crate::suite::local;

async fn put(journal: &LocalJournal, byte: u8) -> Blob {
    let blob = journal.put(vec![byte; 5000], "image/png".to_owned());
    blob.await.unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let heaps = std::fs::read_dir(folder.join("blobs")).unwrap();
    let heaps = heaps.map(|heap| heap.unwrap().path());
    let files = heaps.flat_map(|heap| std::fs::read_dir(heap).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn file_of(folder: &Path, blob: &Blob) -> PathBuf {
    let (heap, name) = blob.hash.split_at(2);
    folder.join("blobs").join(heap).join(name)
}

fn connection(folder: &Path) -> Connection {
    Connection::open(folder.join("journal.sqlite")).unwrap()
}

/// As if everything had happened two hours ago.
fn two_hours_pass(folder: &Path) {
    let sql = "UPDATE blob_put SET time = time - 7200000; UPDATE swept SET time = time - 7200000;";
    connection(folder).execute_batch(sql).unwrap();
    for file in files(folder) {
        let file = std::fs::File::open(file).unwrap();
        let then = SystemTime::now() - Duration::from_secs(7200);
        file.set_modified(then).unwrap();
    }
}

fn puts(folder: &Path) -> i64 {
    let sql = "SELECT count(*) FROM blob_put";
    let connection = connection(folder);
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Opens the journal and lets its chores go on until something is so.
async fn open_until(folder: &Path, so: impl Fn() -> bool) -> LocalJournal {
    let journal = local(folder);
    let mut other = ThreadScript::new();
    other.start(&journal, "/w").await;
    for _ in 0..10_000 {
        if so() {
            return journal;
        }
        // Each append lets a piece of the chores go first.
        other.append(&journal, vec![renamed("other")]).await;
    }
    panic!("it never came to that");
}

#[tokio::test]
async fn what_was_put_and_never_named_goes_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (named, unnamed);
    {
        let journal = local(folder.path());
        named = put(&journal, 1).await;
        unnamed = put(&journal, 2).await;
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script.append(&journal, vec![naming(&named)]).await;
        // Put once more, it waits for a name although it has one.
        put(&journal, 1).await;
    }
    assert_eq!(puts(folder.path()), 2);
    two_hours_pass(folder.path());
    let fresh;
    {
        let journal = open_until(folder.path(), || puts(folder.path()) == 0).await;
        assert_eq!(journal.get(unnamed).await, Err(ReadError::NotFound));
        assert_eq!(journal.get(named).await, Ok(vec![1; 5000]));
        fresh = put(&journal, 3).await;
    }
    assert_eq!(puts(folder.path()), 1);
    let journal = local(folder.path());
    assert_eq!(journal.get(fresh).await, Ok(vec![3; 5000]));
}

#[tokio::test]
async fn putting_and_naming_leaves_no_notes() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    for _ in 0..5 {
        let blob = put(&journal, 1).await;
        script.append(&journal, vec![naming(&blob)]).await;
    }
    assert_eq!(puts(folder.path()), 0);
    for _ in 0..5 {
        put(&journal, 2).await;
    }
    assert_eq!(puts(folder.path()), 1);
}

#[tokio::test]
async fn another_process_keeps_what_it_has_put() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (local(folder.path()), local(folder.path()));
    let blob = put(&one, 1).await;
    // The other puts the same, names it more often than it has put it, and deletes everything.
    put(&other, 1).await;
    let mut script = ThreadScript::new();
    script.start(&other, "/w").await;
    for _ in 0..3 {
        script.append(&other, vec![naming(&blob)]).await;
    }
    other.delete(script.thread).await.unwrap();
    let mut script = ThreadScript::new();
    script.start(&one, "/w").await;
    script.append(&one, vec![naming(&blob)]).await;
    assert_eq!(other.get(blob.clone()).await, Ok(vec![1; 5000]));
    one.delete(script.thread).await.unwrap();
    assert_eq!(other.get(blob).await, Err(ReadError::NotFound));
}

#[tokio::test]
async fn what_a_crash_left_behind_is_swept_away() {
    let folder = tempfile::tempdir().unwrap();
    let long = "long ".repeat(20_000);
    let (named, orphan, stranger);
    let mut script = ThreadScript::new();
    {
        let journal = local(folder.path());
        named = put(&journal, 1).await;
        orphan = put(&journal, 2).await;
        script.start(&journal, "/w").await;
        let bodies = vec![naming(&named), completed("t", "i", &long)];
        script.append(&journal, bodies).await;
    }
    // The process was killed before it could note what it had put, and while it wrote another.
    let connection = connection(folder.path());
    connection.execute("DELETE FROM blob_put", []).unwrap();
    let heap = file_of(folder.path(), &named);
    let heap = heap.parent().unwrap();
    std::fs::write(heap.join("draft-1-0"), "half").unwrap();
    stranger = heap.join("notes.txt");
    std::fs::write(&stranger, "not ours").unwrap();
    two_hours_pass(folder.path());
    std::fs::write(heap.join("draft-2-0"), "someone writes it now").unwrap();
    let gone = || files(folder.path()).len() == 4;
    let journal = open_until(folder.path(), gone).await;
    assert_eq!(journal.get(orphan.clone()).await, Err(ReadError::NotFound));
    assert!(journal.get(named).await.is_ok());
    assert!(stranger.exists());
    assert!(heap.join("draft-2-0").exists());
    let all = journal.read(script.thread, raddle_core::Seq::ZERO, usize::MAX);
    assert!(format!("{:?}", all.await.unwrap()).contains(&long));
    // What is put again is there again.
    assert_eq!(put(&journal, 2).await, orphan);
    assert_eq!(journal.get(orphan).await, Ok(vec![2; 5000]));
}

#[tokio::test]
async fn a_draft_of_a_former_process_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = vec![7; 5000];
    let blob = put(&local(folder.path()), 7).await;
    let file = file_of(folder.path(), &blob);
    std::fs::remove_file(&file).unwrap();
    // In a container every process has the same number.
    for at in 0..10 {
        let draft = format!("draft-{}-{at}", std::process::id());
        std::fs::write(file.with_file_name(draft), "half").unwrap();
    }
    let journal = local(folder.path());
    assert_eq!(put(&journal, 7).await, blob);
    assert_eq!(journal.get(blob).await, Ok(bytes));
}
