//! `thread/search`.

use std::future::ready;
use std::sync::Arc;

use raddle_core::ports::{
    BoxFuture, ItemEntry, ListQuery, Page, PageQuery, Pages, ReadError, Summary, TurnEntry,
};
use raddle_core::{Seq, ThreadId, TurnId};
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;
use crate::script;

#[tokio::test]
async fn conversation() {
    play("thread/search").await;
}

/// Pages that find threads whose items cannot be read.
struct DamagedPages {
    inner: Arc<MemoryJournal>,
    error: ReadError,
}

impl Pages for DamagedPages {
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        self.inner.list(query)
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> BoxFuture<'_, Result<Page<TurnEntry>, ReadError>> {
        self.inner.turns(thread, query)
    }

    fn items(
        &self,
        _: ThreadId,
        _: Option<TurnId>,
        _: PageQuery,
    ) -> BoxFuture<'_, Result<Page<ItemEntry>, ReadError>> {
        Box::pin(ready(Err(self.error.clone())))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> BoxFuture<'_, Result<Page<Summary>, ReadError>> {
        self.inner.search(text, query)
    }
}

#[tokio::test]
async fn a_match_in_an_unreadable_thread_shows_its_preview() {
    let damaged = ReadError::Corrupt {
        at: Seq(1),
        what: "it is not what was written".to_owned(),
    };
    let unavailable = ReadError::Unavailable("for a while".to_owned());
    for (error, is_shown) in [
        (ReadError::NotFound, true),
        (damaged, true),
        (unavailable, false),
    ] {
        let harness = Harness::new();
        let inner = Arc::new(MemoryJournal::new());
        let pages = Arc::new(DamagedPages {
            inner: inner.clone(),
            error: error.clone(),
        });
        let threads = script::with_pages(inner, pages, &["a needle in the hay"]);
        let mut server = Server::open(harness.options(), threads).expect("a server");
        let mut client = TestClient::connect_experimental(&mut server).await;
        let started = client.ask("thread/start", json!({})).await;
        let thread = &started.expect("a thread")["thread"]["id"];
        let input = json!([{"type": "text", "text": "first words"}]);
        client.request("turn/start", json!({"threadId": thread, "input": input}));
        while client.next().await["method"] != "turn/completed" {}
        let response = client
            .ask("thread/search", json!({"searchTerm": "needle"}))
            .await;
        let snippet = response.map(|it| it["data"][0]["snippet"].clone()).ok();
        let expected = is_shown.then(|| json!("first words"));
        assert_eq!(snippet, expected, "{error}");
    }
}
