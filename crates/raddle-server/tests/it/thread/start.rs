//! `thread/start`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raddle_core::ports::{AppendError, Journal, ReadError, Waiting};
use raddle_core::{Base, Class, Record, Seq, ThreadId};
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{Client, play};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    play("thread/start").await;
}

/// Other clients hear that there is a thread, and nothing of what happens in it.
#[tokio::test]
async fn others_hear_of_it() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut other = Client::connect(&mut server).await;
    let mut client = Client::connect(&mut server).await;
    let result = client
        .ask("thread/start", json!({}))
        .await
        .expect("a thread");
    let id = &result["thread"]["id"];
    let heard = other.next().await;
    assert_eq!(heard["method"], "thread/started");
    assert_eq!(heard["params"]["thread"]["id"], *id);
    assert_eq!(heard.get("seq"), None, "only subscribers get numbers");
}

/// A journal that may be away.
struct Away {
    journal: MemoryJournal,
    is_away: AtomicBool,
    /// What it says then.
    error: AppendError,
}

impl Away {
    fn check(&self) -> Result<(), ReadError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(ReadError::Unavailable("test".to_owned()));
        }
        Ok(())
    }
}

impl Journal for Away {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        class: Class,
    ) -> Waiting<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            self.check().map_err(|_| self.error.clone())?;
            self.journal.append(thread, after, records, class).await
        })
    }

    fn head(&self, thread: ThreadId) -> Waiting<'_, Result<Seq, ReadError>> {
        Box::pin(async move {
            self.check()?;
            self.journal.head(thread).await
        })
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Waiting<'_, Result<Vec<Record>, ReadError>> {
        self.journal.read(thread, after, bytes_max)
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> Waiting<'_, Result<Option<Base>, ReadError>> {
        self.journal.base(thread, at)
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> Waiting<'_, Result<(), AppendError>> {
        self.journal.save_base(thread, base)
    }

    fn fork(
        &self,
        from: ThreadId,
        at: Seq,
        to: ThreadId,
    ) -> Waiting<'_, Result<Seq, raddle_core::ports::ForkError>> {
        self.journal.fork(from, at, to)
    }

    fn delete(&self, thread: ThreadId) -> Waiting<'_, Result<(), AppendError>> {
        self.journal.delete(thread)
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_journal_is_away_the_caller_is_told_to_try_again() {
    for error in [
        AppendError::Unavailable("test".to_owned()),
        AppendError::Unknown("test".to_owned()),
    ] {
        let stage = Stage::new();
        let journal = Arc::new(Away {
            journal: MemoryJournal::new(),
            is_away: AtomicBool::new(true),
            error,
        });
        let threads = crate::script::threads_in(journal.clone(), &[]);
        let mut server = Server::open(stage.options(), threads).expect("a server");
        let mut client = Client::connect(&mut server).await;
        let begun = tokio::time::Instant::now();
        let refused = client.ask("thread/start", json!({})).await;
        let refused = refused.expect_err("no journal");
        assert!(begun.elapsed() < Duration::from_secs(6));
        assert_eq!(refused["code"], -32001);
        let data = json!({"errorInfo": "server_overloaded", "retryAfterMs": 1000});
        assert_eq!(refused["data"], data);

        // Back in time, it takes what it was asked for.
        client.request("thread/start", json!({}));
        tokio::time::sleep(Duration::from_secs(2)).await;
        journal.is_away.store(false, Ordering::Relaxed);
        let answer = client.next().await;
        assert!(answer["result"]["thread"]["id"].is_string(), "{answer}");
    }
}
