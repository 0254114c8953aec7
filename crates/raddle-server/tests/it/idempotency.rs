//! Requests that a client sends twice under its own id run once.

use std::sync::Arc;

use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use raddle_store::LocalJournal;
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;

async fn connect(server: &mut Server) -> TestClient {
    let capabilities = json!({"experimentalApi": true, "extensions": {"raddle/idempotency": {}}});
    TestClient::connect_with(server, ConnectionLimits::default(), capabilities).await
}

/// Returns the response to a request, and skips the notifications before it.
async fn answer(client: &mut TestClient, id: i64) -> Value {
    loop {
        let message = client.next().await;
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
    }
}

async fn ask(client: &mut TestClient, method: &str, params: Value) -> Value {
    let id = client.request(method, params);
    let mut answer = answer(client, id).await;
    answer["id"].take();
    answer
}

/// Returns the number of threads.
async fn threads(client: &mut TestClient) -> usize {
    let listed = ask(client, "thread/list", json!({})).await;
    listed["result"]["data"].as_array().map_or(0, Vec::len)
}

/// On the same connection, and on another connection of the same client.
#[tokio::test]
async fn retries_get_the_first_response() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut client = connect(&mut server).await;
    let mut other = connect(&mut server).await;
    let start_params = json!({"clientRequestId": "start"});
    let response = ask(&mut client, "thread/start", start_params.clone()).await;
    let thread = &response["result"]["thread"]["id"];
    for client in [&mut client, &mut other] {
        let retry = ask(client, "thread/start", start_params.clone()).await;
        assert_eq!(retry["result"]["thread"]["id"], *thread);
    }
    let input = |text: &str| json!([{"type": "text", "text": text}]);
    for (method, mut params, other_params) in [
        (
            "thread/name/set",
            json!({"name": "warp"}),
            json!({"name": "weft"}),
        ),
        (
            "thread/metadata/update",
            json!({"gitInfo": {"branch": "a"}}),
            json!({"gitInfo": {"branch": "b"}}),
        ),
        (
            "thread/goal/set",
            json!({"objective": "a", "status": "paused"}),
            json!({"objective": "b", "status": "paused"}),
        ),
        (
            "turn/start",
            json!({"input": input("hi")}),
            json!({"input": input("ho")}),
        ),
        (
            "thread/queue/add",
            json!({"input": input("next"), "clientUserMessageId": "m"}),
            json!({"input": input("last"), "clientUserMessageId": "m"}),
        ),
    ] {
        params["threadId"] = thread.clone();
        params["clientRequestId"] = json!("k");
        let first = ask(&mut client, method, params.clone()).await;
        assert!(first.get("result").is_some(), "{method}: {first}");
        // Other requests in between make no difference.
        let renamed = json!({"threadId": thread, "name": "between"});
        ask(&mut client, "thread/name/set", renamed).await;
        for client in [&mut client, &mut other] {
            let retry = ask(client, method, params.clone()).await;
            assert_eq!(retry, first, "{method}");
        }
        let members = other_params.as_object().expect("params").clone();
        params.as_object_mut().expect("params").extend(members);
        let refused = ask(&mut other, method, params).await;
        let data = &refused["error"]["data"];
        assert_eq!(data["errorInfo"], "idempotency_conflict", "{method}");
    }
    assert_eq!(threads(&mut client).await, 1);
    let queue = ask(
        &mut client,
        "thread/queue/list",
        json!({"threadId": thread}),
    )
    .await;
    assert_eq!(queue["result"]["data"].as_array().map(Vec::len), Some(1));
}

/// A retry does not repeat its effect on later state.
#[tokio::test]
async fn a_retried_archive_does_not_archive_again() {
    let mut harness = Harness::new();
    harness.says.push("hel…".to_owned());
    let mut server = harness.open();
    let mut client = connect(&mut server).await;
    let response = ask(&mut client, "thread/start", json!({})).await;
    let thread = &response["result"]["thread"]["id"];
    let archive = json!({"threadId": thread, "clientRequestId": "k"});
    let thread_params = json!({"threadId": thread});
    ask(&mut client, "thread/archive", archive.clone()).await;
    ask(&mut client, "thread/unarchive", thread_params.clone()).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let start = json!({"threadId": thread, "input": input});
    ask(&mut client, "turn/start", start).await;
    let retry = ask(&mut client, "thread/archive", archive).await;
    assert_eq!(retry["result"], json!({}));
    let read = ask(&mut client, "thread/read", thread_params).await;
    assert_eq!(read["result"]["thread"]["status"]["type"], "active");
    assert_eq!(threads(&mut client).await, 1);
}

/// Of two copies at once, the second finds the thread of the first.
#[tokio::test]
async fn two_copies_at_once_run_once() {
    let mut server = Harness::new().open();
    let mut first_client = connect(&mut server).await;
    let mut other = connect(&mut server).await;
    for (method, number) in [("thread/start", 1), ("thread/fork", 2)] {
        let mut params = json!({"clientRequestId": "k"});
        if method == "thread/fork" {
            let from = ask(&mut first_client, "thread/loaded/list", json!({})).await;
            params["threadId"] = from["result"]["data"][0].clone();
        }
        let ids = [
            first_client.request(method, params.clone()),
            other.request(method, params),
        ];
        let answers = [
            answer(&mut first_client, ids[0]).await,
            answer(&mut other, ids[1]).await,
        ];
        let [first, second] = answers.map(|it| it["result"]["thread"]["id"].clone());
        assert!(first.is_string(), "{method}");
        assert_eq!(first, second, "{method}");
        let loaded = ask(&mut first_client, "thread/loaded/list", json!({})).await;
        let loaded = loaded["result"]["data"].as_array().map(Vec::len);
        assert_eq!(loaded, Some(number), "{method}");
    }
}

/// A deleted thread stays deleted.
#[tokio::test]
async fn a_retried_delete_succeeds() {
    let mut server = Harness::new().open();
    let mut client = connect(&mut server).await;
    let response = ask(&mut client, "thread/start", json!({})).await;
    let thread = &response["result"]["thread"]["id"];
    let delete = json!({"threadId": thread, "clientRequestId": "k"});
    for _ in 0..3 {
        let deleted = ask(&mut client, "thread/delete", delete.clone()).await;
        assert_eq!(deleted["result"], json!({}));
    }
    let plain = ask(&mut client, "thread/delete", json!({"threadId": thread})).await;
    assert_eq!(
        plain["error"]["message"],
        format!("thread not found: {}", thread.as_str().expect("an id"))
    );
}

/// Also at once, before the deletion is complete.
#[tokio::test]
async fn a_deleted_thread_is_created_again() {
    let mut server = Harness::new().open();
    let mut client = connect(&mut server).await;
    let start_params = json!({"clientRequestId": "k"});
    let response = ask(&mut client, "thread/start", start_params.clone()).await;
    let thread = response["result"]["thread"]["id"].clone();
    for number in 0..20 {
        let delete = client.request("thread/delete", json!({"threadId": thread}));
        let start = client.request("thread/start", start_params.clone());
        assert_eq!(answer(&mut client, delete).await["result"], json!({}));
        let response = answer(&mut client, start).await;
        assert_eq!(response["result"]["thread"]["id"], thread, "{response}");
        let name = json!({"threadId": thread, "name": format!("{number}")});
        let named = ask(&mut client, "thread/name/set", name).await;
        assert_eq!(named["result"], json!({}), "{named}");
        assert_eq!(threads(&mut client).await, 1);
    }
}

/// The same with real concurrency: each request on a thread finds the state that the previous one
/// left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_thread_is_created_again_under_concurrency() {
    const ROUNDS: usize = 15;
    for ephemeral in [false, true] {
        let harness = Harness::new();
        let folder = harness.home.join("threads");
        let journal = LocalJournal::open(&raddle_store::Options { folder }).expect("a journal");
        let journal = Arc::new(journal);
        let script = crate::script::with_pages(journal.clone(), journal, &[]);
        let mut server = Server::open(harness.options(), script).expect("a server");
        let mut client = connect(&mut server).await;
        let start_params = json!({"clientRequestId": "k", "ephemeral": ephemeral});
        let response = ask(&mut client, "thread/start", start_params.clone()).await;
        let thread = response["result"]["thread"]["id"].clone();
        let thread_params = json!({"threadId": thread});
        for round in 0..ROUNDS {
            let sent: Vec<(i64, i64)> = (0..4)
                .map(|_| {
                    let delete = client.request("thread/delete", thread_params.clone());
                    (delete, client.request("thread/start", start_params.clone()))
                })
                .collect();
            for (delete, start) in sent {
                let deleted = answer(&mut client, delete).await;
                assert_eq!(deleted["result"], json!({}), "{round}: {deleted}");
                let started = answer(&mut client, start).await;
                assert_eq!(
                    started["result"]["thread"]["id"], thread,
                    "{round}: {started}"
                );
            }
            let name = json!({"threadId": thread, "name": format!("{round}")});
            let named = ask(&mut client, "thread/name/set", name).await;
            assert_eq!(named["result"], json!({}), "{round}: {named}");
            let loaded = ask(&mut client, "thread/loaded/list", json!({})).await;
            assert_eq!(loaded["result"]["data"], json!([thread]), "{round}");
        }
        let read = ask(&mut client, "thread/read", thread_params.clone()).await;
        let name = format!("{}", ROUNDS - 1);
        assert_eq!(read["result"]["thread"]["name"], name, "{read}");
        let listed = usize::from(!ephemeral);
        assert_eq!(threads(&mut client).await, listed);
        ask(&mut client, "thread/delete", thread_params).await;
        let loaded = ask(&mut client, "thread/loaded/list", json!({})).await;
        assert_eq!(loaded["result"]["data"], json!([]));
    }
}

#[tokio::test]
async fn request_ids_require_the_extension() {
    let mut server = Harness::new().open();
    let mut plain = TestClient::connect_without_extensions(&mut server).await;
    let error = plain
        .ask("thread/start", json!({"clientRequestId": "k"}))
        .await;
    let what = "clientRequestId needs the extension raddle/idempotency; name it in capabilities.extensions of initialize";
    assert_eq!(error.expect_err("no")["message"], what);
    let mut client = connect(&mut server).await;
    for id in [String::new(), "x".repeat(257)] {
        let refused = ask(&mut client, "thread/start", json!({"clientRequestId": id})).await;
        let what = "clientRequestId has 1 to 256 bytes";
        assert_eq!(refused["error"]["message"], what);
    }
    assert_eq!(threads(&mut client).await, 0);
}
