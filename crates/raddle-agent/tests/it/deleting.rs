//! Threads that are deleted and created again with the same id.

use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{AgentError, Options, Threads};
use raddle_core::ports::{Journal, ReadError};
use raddle_core::{
    Class, Command, Delete, Event, IdempotencyKey, IdempotentRequest, Record, RecordBody, ThreadId,
    ThreadStarted,
};
use raddle_store::{FaultMode, FaultyJournal};
use tokio::sync::oneshot;

use super::script::ScriptedAnswers;
use super::{client, execute, options, rename, started};

fn idempotent_request() -> IdempotentRequest {
    IdempotentRequest {
        key: IdempotencyKey {
            principal: "user:a".to_owned(),
            method: "thread/start".to_owned(),
            id: "k".to_owned(),
        },
        request_hash: "hash".to_owned(),
        render: None,
    }
}

/// Starts a thread under the key, as a request does: after a lookup of the key.
async fn begin(threads: &Threads, start: ThreadStarted) {
    let IdempotentRequest {
        key,
        request_hash: fingerprint,
        ..
    } = idempotent_request();
    let recalled = threads.recall(start.thread, &key, &fingerprint).await;
    let is_gone = matches!(
        recalled,
        Err(AgentError::Read(ReadError::NotFound)
            | AgentError::Refused(raddle_core::Refusal::Deleted))
    );
    assert!(is_gone, "{recalled:?}");
    let (reply, answer) = oneshot::channel();
    let reply = |subscribed| drop(reply.send(subscribed));
    threads.start_for(Some(idempotent_request()), start, client().0, reply);
    answer.await.expect("an answer").expect("a thread");
}

/// Until its remains are removed, a deleted thread blocks no new thread and appears in no list.
#[tokio::test(start_paused = true)]
async fn a_deleted_thread_is_created_anew_after_its_removal() {
    for ephemeral in [false, true] {
        let journal = Arc::new(FaultyJournal::new());
        let port: Arc<dyn Journal> = journal.clone();
        let threads = Threads::new(Options {
            memory: port.clone(),
            ..options(&port, Arc::new(ScriptedAnswers::new(&[])))
        });
        let start = ThreadStarted {
            ephemeral,
            ..started(ThreadId::mint())
        };
        let id = start.thread;
        begin(&threads, start.clone()).await;
        assert_eq!(threads.loaded(), [id]);

        let (reply, answer) = oneshot::channel();
        let slow = journal.clone();
        let deleted = move |outcome| {
            // The deletion is stored, but the removal of the records is slow.
            slow.set(FaultMode::Slow);
            drop(reply.send(outcome));
        };
        let thread = threads.live(id).expect("it is live");
        thread
            .send_command(Command::Delete(Delete::default()), deleted)
            .await;
        answer.await.expect("an answer").expect("stored");
        assert_eq!(threads.loaded(), [], "ephemeral: {ephemeral}");
        assert!(execute(&thread, rename(Some("a"))).await.is_err());

        let again = tokio::spawn({
            let threads = threads.clone();
            async move { begin(&threads, start).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!again.is_finished(), "ephemeral: {ephemeral}");
        journal.set(FaultMode::Healthy);
        again.await.expect("no panic");
        assert_eq!(threads.loaded(), [id]);
        let thread = threads.live(id).expect("it is live");
        execute(&thread, rename(Some("b"))).await.expect("stored");
        let name = thread
            .inspect(|thread| thread.name().map(str::to_owned))
            .await;
        assert_eq!(name, Ok(Some("b".to_owned())));
    }
}

/// As if the server was killed between the deletion and the removal.
#[tokio::test]
async fn the_remains_of_a_deletion_do_not_block_a_new_thread() {
    let journal = super::journal();
    let open = || Threads::new(options(&journal, Arc::new(ScriptedAnswers::new(&[]))));
    let start = started(ThreadId::mint());
    let first = open();
    begin(&first, start.clone()).await;
    first.close().await;
    let head = journal.head(start.thread).await.expect("a head");
    let deleted = [Record {
        seq: head.next(),
        at: raddle_core::Timestamp(1_000_000),
        body: RecordBody::from(Event::Deleted { principal: None }),
    }];
    let stored = journal.append(start.thread, head, &deleted, Class::Power);
    stored.await.expect("stored");
    let second = open();
    begin(&second, start).await;
}
