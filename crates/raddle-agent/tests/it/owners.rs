//! Several nodes on one folder: a thread is taken over from a dead node, never from a live one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_agent::{AgentError, Liveness, Options, Threads};
use raddle_core::ports::{BoxFuture, ReadError};
use raddle_core::{Recovery, ThreadId, Timestamp};
use raddle_store::{LocalJournal, MemoryJournal, NodeLock};

use super::script::ScriptedAnswers;
use super::{begin, client, execute, rename};

/// Liveness by the node locks in a folder.
struct LockLiveness(PathBuf);

impl Liveness for LockLiveness {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        let alive = NodeLock::is_alive(&self.0, node);
        let alive = alive.map_err(|error| ReadError::Unavailable(error.to_string()));
        Box::pin(std::future::ready(alive))
    }
}

/// A node with its own journal on a folder. It is alive as long as its lock.
pub fn node(folder: &Path, name: &str) -> (Threads, NodeLock) {
    let options = raddle_store::Options {
        folder: folder.to_owned(),
    };
    let journal = Arc::new(LocalJournal::open(&options).expect("a journal"));
    let lock = NodeLock::take(folder, name).expect("a lock");
    let threads = Threads::new(Options {
        journal: journal.clone(),
        pages: journal,
        memory: Arc::new(MemoryJournal::new()),
        memory_pages: Arc::new(MemoryJournal::new()),
        blobs: Arc::new(MemoryJournal::new()),
        memory_blobs: Arc::new(MemoryJournal::new()),
        model: Arc::new(ScriptedAnswers::new(&[])),
        tools: Arc::new(raddle_agent::NoTools),
        rules: Arc::new(raddle_agent::FixedRules::default()),
        webhook: Arc::new(raddle_agent::NoWebhook),
        hooks: Arc::new(raddle_core::ports::NoHooks),
        skills: Arc::new(raddle_agent::NoSkills),
        plugins: Arc::new(raddle_core::ports::NoPlugins),
        clock: || Timestamp(1_000_000),
        node: name.to_owned(),
        liveness: Arc::new(LockLiveness(folder.to_owned())),
        recovery: Recovery::Continue,
    });
    (threads, lock)
}

#[tokio::test]
async fn a_thread_is_not_taken_over_from_a_live_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = ThreadId::mint();
    let (first, alive) = node(folder.path(), "first");
    let (second, _alive) = node(folder.path(), "second");
    let thread = begin(&first, id, client().0).await;
    let error = second.get(id).await.err();
    let node = "first".to_owned();
    assert_eq!(error, Some(AgentError::OwnedBy { node }));
    // That did not affect the owner.
    let epoch = thread
        .inspect(|thread| thread.epoch())
        .await
        .expect("a look");
    let renamed = execute(&thread, rename(Some("mine"))).await;
    renamed.expect("stored");

    // Without its lock it counts as dead, whatever it still does.
    drop(alive);
    let thread = second.get(id).await.expect("the thread");
    let next = thread
        .inspect(|thread| thread.epoch())
        .await
        .expect("a look");
    assert_eq!(next.0, epoch.0 + 1);
    let owner = thread
        .inspect(|thread| thread.node().map(str::to_owned))
        .await;
    assert_eq!(owner, Ok(Some("second".to_owned())));
}

#[tokio::test]
async fn a_thread_unloaded_by_a_live_node_can_be_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let id = ThreadId::mint();
    let (first, _alive) = node(folder.path(), "first");
    let (second, _second_alive) = node(folder.path(), "second");
    begin(&first, id, client().0).await;
    assert!(matches!(
        second.get(id).await,
        Err(AgentError::OwnedBy { .. })
    ));
    first.close().await;
    let thread = second.get(id).await.expect("the thread");
    // Now the second node owns it.
    thread.inspect(|_| ()).await.expect("a look");
    let error = first.get(id).await.err();
    let node = "second".to_owned();
    assert_eq!(error, Some(AgentError::OwnedBy { node }));
}
