//! Reading threads without ownership.

use std::sync::Arc;

use raddle_agent::{AgentError, Options, Ownership, Threads};
use raddle_core::ports::{Journal, ListQuery, ReadError};
use raddle_core::{Refusal, Status, ThreadId};
use raddle_store::{FaultMode, FaultyJournal};

use super::owners::node;
use super::script::ScriptedAnswers;
use super::{begin, client, execute, options, rename};

#[tokio::test]
async fn peeking_does_not_take_over_a_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = ThreadId::mint();
    let (first, alive) = node(folder.path(), "first");
    let (second, _alive) = node(folder.path(), "second");
    let thread = begin(&first, id, client().0).await;
    let local_view = first.peek(id).await.expect("a look");
    assert_eq!(local_view.ownership, Ownership::Loaded);
    assert!(local_view.is_loaded() && local_view.is_owned());
    let remote_view = second.peek(id).await.expect("a look");
    assert_eq!(remote_view.ownership, Ownership::OwnedElsewhere);
    assert!(!remote_view.is_loaded() && remote_view.is_owned());
    assert_eq!(remote_view.thread, local_view.thread);
    assert_eq!((first.loaded(), second.loaded()), (vec![id], vec![]));
    // The owner is not affected.
    let renamed = execute(&thread, rename(Some("mine"))).await;
    renamed.expect("stored");
    let remote_view = second.peek(id).await.expect("a look");
    assert_eq!(remote_view.thread.name(), Some("mine"));
    assert_eq!(remote_view.thread.epoch(), local_view.thread.epoch());
    // Without its lock the owner counts as dead.
    drop(alive);
    let remote_view = second.peek(id).await.expect("a look");
    assert_eq!(remote_view.ownership, Ownership::Unowned);
    assert!(!remote_view.is_loaded() && !remote_view.is_owned());
}

#[tokio::test]
async fn a_list_contains_the_status_of_loaded_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, _alive) = node(folder.path(), "first");
    let (second, _second_alive) = node(folder.path(), "second");
    let (one, other) = (ThreadId::mint(), ThreadId::mint());
    begin(&first, one, client().0).await;
    begin(&second, other, client().0).await;
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = first.list(query).await.expect("a page");
    let entries = page.entries.iter();
    let mut statuses: Vec<_> = entries.map(|it| (it.summary.thread, it.status)).collect();
    statuses.sort_by_key(|(id, _)| *id);
    assert_eq!(statuses, [(one, Some(Status::Idle)), (other, None)]);
}

/// A busy thread, or a slow disk, does not delay a list.
#[tokio::test]
async fn a_list_waits_for_no_thread() {
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let threads = Threads::new(Options {
        pages: journal.clone(),
        ..options(&port, Arc::new(ScriptedAnswers::new(&[])))
    });
    let id = ThreadId::mint();
    let thread = begin(&threads, id, client().0).await;
    journal.set(FaultMode::Slow);
    let renaming = tokio::spawn(async move { execute(&thread, rename(Some("mine"))).await });
    while journal.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = threads.list(query).await.expect("a page");
    let statuses: Vec<_> = page.entries.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(Status::Idle)]);
    journal.set(FaultMode::Healthy);
    renaming.await.expect("an end").expect("stored");
}

#[tokio::test]
async fn missing_and_deleted_threads_cannot_be_peeked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (threads, _alive) = node(folder.path(), "first");
    let id = ThreadId::mint();
    let none = threads.peek(id).await.err();
    assert_eq!(none, Some(AgentError::Read(ReadError::NotFound)));
    let thread = begin(&threads, id, client().0).await;
    let delete = raddle_core::Command::Delete(raddle_core::Delete { principal: None });
    execute(&thread, delete).await.expect("deleted");
    threads.close().await;
    let error = threads.peek(id).await.err();
    assert!(
        matches!(
            error,
            Some(AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted))
        ),
        "{error:?}"
    );
}
