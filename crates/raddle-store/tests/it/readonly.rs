//! A read-only folder: everything is read, every write is rejected, and nothing is attempted.
//!
//! Permissions do not bind root, so there the test program is started again as another user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use raddle_core::ports::{AppendError, Blobs, Journal, ListQuery, PageQuery, Pages, ReadError};
use raddle_core::{Base, Class, Record, Seq, Thread, ThreadId, Timestamp};
use raddle_store::{LocalJournal, Options};

use crate::makers::local;
use crate::records::{ThreadScript, completed, renamed};

const FOLDER: &str = "RADDLE_STORE_TEST_SHUT";

/// User id that owns nothing here.
const NOBODY: u32 = 65_534;

fn options(folder: &Path) -> Options {
    Options {
        folder: folder.to_owned(),
    }
}

/// Creates a journal with a thread that has a long item.
async fn create_journal(outer: &Path) -> (PathBuf, ThreadScript) {
    let folder = outer.join("a home?");
    let journal = local(&folder);
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t1", "find me here").await;
    let long = "long ".repeat(20_000);
    script
        .append(&journal, vec![completed("t1", "long", &long)])
        .await;
    (folder, script)
}

/// Returns every file, its content and its modification time.
fn all_files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let changed = fs::metadata(&path).unwrap().modified().unwrap();
            files.insert(path.clone(), (fs::read(&path).unwrap(), changed));
        }
    }
    files
}

/// Reads everything, and attempts every kind of write.
async fn check_read_only(journal: &LocalJournal) {
    assert!(!journal.is_writable());
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = journal.list(query.clone()).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    let (thread, head) = (page.entries[0].thread, page.entries[0].head);
    assert_eq!(journal.head(thread).await, Ok(head));
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(records.last().map(|record| record.seq), Some(head));
    let pages = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let turns = journal.turns(thread, pages.clone()).await.unwrap();
    assert_eq!(turns.entries.len(), 1);
    let items = journal.items(thread, None, pages).await.unwrap();
    assert!(!items.entries.is_empty());
    assert_eq!(journal.base(thread, None).await, Ok(None));
    let result = journal.search("find me".to_owned(), query).await;
    assert!(result.is_ok(), "{result:?}");

    let record = |seq: Seq, body| Record {
        seq,
        at: Timestamp(1),
        body,
    };
    let short = [record(head.next(), renamed("other"))];
    let long = completed("t1", "more", &"more ".repeat(20_000));
    let long = [record(head.next(), long)];
    for records in [&short, &long] {
        for class in [Class::Process, Class::Power] {
            let append = journal.append(thread, head, records, class).await;
            assert!(is_rejected(&append), "{append:?}");
        }
    }
    let rejected = journal.append(ThreadId::mint(), Seq::ZERO, &short, Class::Power);
    assert!(is_rejected(&rejected.await));
    let base = Base::of(&Thread::new());
    assert!(is_rejected(&journal.save_base(thread, base).await));
    assert!(is_rejected(&journal.delete(thread).await));
    let put = journal
        .put(thread, vec![1, 2, 3], "text/plain".to_owned())
        .await;
    assert!(is_rejected(&put), "{put:?}");
}

fn is_rejected<T>(outcome: &Result<T, AppendError>) -> bool {
    matches!(outcome, Err(AppendError::ReadOnly(_)))
}

#[tokio::test]
async fn a_journal_that_is_opened_for_reading_is_not_written() {
    let outer = tempfile::tempdir().unwrap();
    let (folder, mut script) = create_journal(outer.path()).await;
    let copy = outer.path().join("copy");
    let journal = local(&folder);
    script.append(&journal, vec![renamed("in the log")]).await;
    copy_all(&folder, &copy);
    // Beside a writer.
    check_read_only(&LocalJournal::open_to_read(&options(&folder)).unwrap()).await;
    // Without a writer.
    let durable_files = || {
        let mut files = all_files(&copy);
        // Files that SQLite creates for reading are not records.
        files.retain(|path, _| !path.display().to_string().ends_with("-shm"));
        files.retain(|_, (bytes, _)| !bytes.is_empty());
        files
    };
    let before = durable_files();
    check_read_only(&LocalJournal::open_to_read(&options(&copy)).unwrap()).await;
    assert!(durable_files() == before, "something was written");
}

#[tokio::test]
async fn a_missing_folder_is_not_created() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("nothing");
    let opened = LocalJournal::open_to_read(&options(&folder));
    assert!(
        matches!(opened, Err(ReadError::Unavailable(_))),
        "{opened:?}"
    );
    assert!(!folder.exists());
}

/// Sets the permissions of a folder and its files.
fn set_rights(folder: &Path, folder_mode: u32, file_mode: u32) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_rights(&path, folder_mode, file_mode);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(file_mode)).unwrap();
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(folder_mode)).unwrap();
}

#[test]
#[ignore = "is run by the other tests here, as one who may not write"]
fn uses_a_shut_folder() {
    let folder = std::env::var_os(FOLDER).expect("the folder is named");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    runtime.block_on(async {
        let journal = LocalJournal::open(&options(Path::new(&folder))).unwrap();
        check_read_only(&journal).await;
    });
}

/// Runs [`uses_a_shut_folder`] as a user without write permission.
fn use_as_nobody(outer: &Path, folder: &Path) {
    // This path works even if the program's folder is closed to other users.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["readonly::uses_a_shut_folder", "--exact", "--ignored"])
        .env(FOLDER, folder)
        .current_dir(outer);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

#[tokio::test]
async fn a_folder_without_the_right_to_write_is_read() {
    let outer = tempfile::tempdir().unwrap();
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (folder, _) = create_journal(outer.path()).await;
    set_rights(&folder, 0o555, 0o444);
    let before = all_files(&folder);
    use_as_nobody(outer.path(), &folder);
    assert!(all_files(&folder) == before, "something was written");
    set_rights(&folder, 0o755, 0o644);
}

#[tokio::test]
async fn a_read_only_folder_with_a_log_is_read() {
    let outer = tempfile::tempdir().unwrap();
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (folder, mut script) = create_journal(outer.path()).await;
    // A killed process leaves its WAL and the WAL's index behind: here, a copy of both.
    let copy = outer.path().join("copy");
    let journal = local(&folder);
    script.append(&journal, vec![renamed("in the log")]).await;
    copy_all(&folder, &copy);
    drop(journal);
    assert!(fs::metadata(copy.join("journal.sqlite-wal")).unwrap().len() > 0);
    set_rights(&copy, 0o555, 0o444);
    let before = all_files(&copy);
    use_as_nobody(outer.path(), &copy);
    assert!(all_files(&copy) == before, "something was written");
    set_rights(&copy, 0o755, 0o644);
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
