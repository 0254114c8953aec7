//! Files beside the local journal that are no longer, or never were, referred to.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{Blob, ThreadId};
use raddle_store::LocalJournal;
use rusqlite::Connection;

use crate::makers::local;
use crate::records::{ThreadScript, completed, record_with_blob, renamed};

fn files(folder: &Path) -> Vec<PathBuf> {
    let directories = std::fs::read_dir(folder.join("blobs")).unwrap();
    let directories = directories.map(|directory| directory.unwrap().path());
    let files = directories.flat_map(|directory| std::fs::read_dir(directory).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn file_of(folder: &Path, blob: &Blob) -> PathBuf {
    let (directory, name) = blob.hash.split_at(2);
    folder.join("blobs").join(directory).join(name)
}

fn connection(folder: &Path) -> Connection {
    Connection::open(folder.join("journal.sqlite")).unwrap()
}

/// Puts a blob. The local journal does not look it up by its thread.
async fn put(journal: &LocalJournal, byte: u8) -> Blob {
    let blob = journal.put(ThreadId::mint(), vec![byte; 5000], "image/png".to_owned());
    blob.await.unwrap()
}

async fn get(journal: &LocalJournal, blob: Blob) -> Result<Vec<u8>, ReadError> {
    journal.get(ThreadId::mint(), blob).await
}

/// Moves all times back by two hours.
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

/// Opens the journal and lets its background jobs run until a condition holds.
async fn open_until(folder: &Path, condition: impl Fn() -> bool) -> LocalJournal {
    let journal = local(folder);
    let mut other = ThreadScript::new();
    other.start(&journal, "/w").await;
    for _ in 0..10_000 {
        if condition() {
            return journal;
        }
        // Each append first runs a piece of a background job.
        other.append(&journal, vec![renamed("other")]).await;
    }
    panic!("it never came to that");
}

#[tokio::test]
async fn unreferenced_blobs_expire_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (referenced, unreferenced);
    {
        let journal = local(folder.path());
        referenced = put(&journal, 1).await;
        unreferenced = put(&journal, 2).await;
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script
            .append(&journal, vec![record_with_blob(&referenced)])
            .await;
        // Put once more, it waits for another reference although it has one.
        put(&journal, 1).await;
    }
    assert_eq!(puts(folder.path()), 2);
    two_hours_pass(folder.path());
    let fresh;
    {
        let journal = open_until(folder.path(), || puts(folder.path()) == 0).await;
        assert_eq!(get(&journal, unreferenced).await, Err(ReadError::NotFound));
        assert_eq!(get(&journal, referenced).await, Ok(vec![1; 5000]));
        fresh = put(&journal, 3).await;
    }
    assert_eq!(puts(folder.path()), 1);
    let journal = local(folder.path());
    assert_eq!(get(&journal, fresh).await, Ok(vec![3; 5000]));
}

#[tokio::test]
async fn referenced_puts_leave_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    for _ in 0..5 {
        let blob = put(&journal, 1).await;
        script.append(&journal, vec![record_with_blob(&blob)]).await;
    }
    assert_eq!(puts(folder.path()), 0);
    for _ in 0..5 {
        put(&journal, 2).await;
    }
    assert_eq!(puts(folder.path()), 1);
}

#[tokio::test]
async fn blobs_put_by_another_process_are_preserved() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (local(folder.path()), local(folder.path()));
    let blob = put(&one, 1).await;
    // The other process puts the same blob, refers to it more often than it has put it, and deletes
    // everything.
    put(&other, 1).await;
    let mut script = ThreadScript::new();
    script.start(&other, "/w").await;
    for _ in 0..3 {
        script.append(&other, vec![record_with_blob(&blob)]).await;
    }
    other.delete(script.thread).await.unwrap();
    let mut script = ThreadScript::new();
    script.start(&one, "/w").await;
    script.append(&one, vec![record_with_blob(&blob)]).await;
    assert_eq!(get(&other, blob.clone()).await, Ok(vec![1; 5000]));
    one.delete(script.thread).await.unwrap();
    assert_eq!(get(&other, blob).await, Err(ReadError::NotFound));
}

#[tokio::test]
async fn leftovers_of_a_crash_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let long = "long ".repeat(20_000);
    let (referenced, orphan, foreign);
    let mut script = ThreadScript::new();
    {
        let journal = local(folder.path());
        referenced = put(&journal, 1).await;
        orphan = put(&journal, 2).await;
        script.start(&journal, "/w").await;
        let bodies = vec![record_with_blob(&referenced), completed("t", "i", &long)];
        script.append(&journal, bodies).await;
    }
    // The process was killed before it could store its put, and while it wrote another file.
    let connection = connection(folder.path());
    connection.execute("DELETE FROM blob_put", []).unwrap();
    let path = file_of(folder.path(), &referenced);
    let directory = path.parent().unwrap();
    std::fs::write(directory.join("draft-1-0"), "half").unwrap();
    foreign = directory.join("notes.txt");
    std::fs::write(&foreign, "not ours").unwrap();
    two_hours_pass(folder.path());
    std::fs::write(directory.join("draft-2-0"), "someone writes it now").unwrap();
    let is_swept = || files(folder.path()).len() == 4;
    let journal = open_until(folder.path(), is_swept).await;
    assert_eq!(
        get(&journal, orphan.clone()).await,
        Err(ReadError::NotFound)
    );
    assert!(get(&journal, referenced).await.is_ok());
    assert!(foreign.exists());
    assert!(directory.join("draft-2-0").exists());
    let all = journal.read(script.thread, raddle_core::Seq::ZERO, usize::MAX);
    assert!(format!("{:?}", all.await.unwrap()).contains(&long));
    // A blob that is put again exists again.
    assert_eq!(put(&journal, 2).await, orphan);
    assert_eq!(get(&journal, orphan).await, Ok(vec![2; 5000]));
}

#[tokio::test]
async fn drafts_of_a_former_process_do_not_block_writes() {
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
    assert_eq!(get(&journal, blob).await, Ok(bytes));
}
