//! Looking at threads without taking them.

use std::sync::Arc;

use raddle_agent::{AgentError, Options, Threads};
use raddle_core::ports::{Journal, ListQuery, ReadError};
use raddle_core::{Refusal, Status, ThreadId};
use raddle_store::{FaultMode, FaultyJournal};

use super::owners::node;
use super::script::ScriptedAnswers;
use super::{begin, client, options, order, rename};

#[tokio::test]
async fn a_look_takes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = ThreadId::mint();
    let (first, alive) = node(folder.path(), "first");
    let (second, _alive) = node(folder.path(), "second");
    let thread = begin(&first, id, client().0).await;
    let here = first.peek(id).await.expect("a look");
    assert!(here.live && here.owned);
    let there = second.peek(id).await.expect("a look");
    assert!(!there.live && there.owned);
    assert_eq!(there.thread, here.thread);
    assert_eq!((first.loaded(), second.loaded()), (vec![id], vec![]));
    // Nobody has noticed.
    let renamed = order(&thread, rename(Some("mine"))).await;
    renamed.expect("stored");
    let there = second.peek(id).await.expect("a look");
    assert_eq!(there.thread.name(), Some("mine"));
    assert_eq!(there.thread.epoch(), here.thread.epoch());
    // Without its lock its owner is dead.
    drop(alive);
    let there = second.peek(id).await.expect("a look");
    assert!(!there.live && !there.owned);
}

#[tokio::test]
async fn a_list_says_what_those_are_doing_that_are_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, _alive) = node(folder.path(), "first");
    let (second, _also) = node(folder.path(), "second");
    let (one, other) = (ThreadId::mint(), ThreadId::mint());
    begin(&first, one, client().0).await;
    begin(&second, other, client().0).await;
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = first.list(query).await.expect("a page");
    let entries = page.entries.iter();
    let mut found: Vec<_> = entries.map(|it| (it.summary.thread, it.status)).collect();
    found.sort_by_key(|(id, _)| *id);
    assert_eq!(found, [(one, Some(Status::Idle)), (other, None)]);
}

/// A thread that is busy, or whose disk is, holds up no list.
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
    let renaming = tokio::spawn(async move { order(&thread, rename(Some("mine"))).await });
    while journal.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = threads.list(query).await.expect("a page");
    let found: Vec<_> = page.entries.iter().map(|it| it.status).collect();
    assert_eq!(found, [Some(Status::Idle)]);
    journal.set(FaultMode::Healthy);
    renaming.await.expect("an end").expect("stored");
}

#[tokio::test]
async fn what_is_not_there_is_not_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let (threads, _alive) = node(folder.path(), "first");
    let id = ThreadId::mint();
    let none = threads.peek(id).await.err();
    assert_eq!(none, Some(AgentError::Read(ReadError::NotFound)));
    let thread = begin(&threads, id, client().0).await;
    let delete = raddle_core::Command::Delete(raddle_core::Delete { principal: None });
    order(&thread, delete).await.expect("deleted");
    threads.close().await;
    let gone = threads.peek(id).await.err();
    assert!(
        matches!(
            gone,
            Some(AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted))
        ),
        "{gone:?}"
    );
}
