//! Requests that come twice under a client's own id are done once.

use std::sync::Arc;

use raddle_rpc::ConnectionLimits;
use raddle_server::Server;
use raddle_store::LocalJournal;
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Stage;

async fn connect(server: &mut Server) -> TestClient {
    let wishes = json!({"experimentalApi": true, "extensions": {"raddle/idempotency": {}}});
    TestClient::introduced(server, ConnectionLimits::default(), wishes).await
}

/// The answer to a request. What is told meanwhile is passed over.
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

/// How many threads there are.
async fn threads(client: &mut TestClient) -> usize {
    let listed = ask(client, "thread/list", json!({})).await;
    listed["result"]["data"].as_array().map_or(0, Vec::len)
}

/// On the same connection, and on another one that the same client has.
#[tokio::test]
async fn each_is_answered_as_the_first_time() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = connect(&mut server).await;
    let mut other = connect(&mut server).await;
    let begin = json!({"clientRequestId": "start"});
    let begun = ask(&mut client, "thread/start", begin.clone()).await;
    let thread = &begun["result"]["thread"]["id"];
    for client in [&mut client, &mut other] {
        let again = ask(client, "thread/start", begin.clone()).await;
        assert_eq!(again["result"]["thread"]["id"], *thread);
    }
    let input = |text: &str| json!([{"type": "text", "text": text}]);
    for (method, mut params, or) in [
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
        // Something else in between makes no difference.
        let renamed = json!({"threadId": thread, "name": "between"});
        ask(&mut client, "thread/name/set", renamed).await;
        for client in [&mut client, &mut other] {
            let again = ask(client, method, params.clone()).await;
            assert_eq!(again, first, "{method}");
        }
        let members = or.as_object().expect("params").clone();
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

/// What one did before is not done to what came after it.
#[tokio::test]
async fn a_thread_that_was_archived_and_brought_back_stays() {
    let mut stage = Stage::new();
    stage.says.push("hel…".to_owned());
    let mut server = stage.open();
    let mut client = connect(&mut server).await;
    let begun = ask(&mut client, "thread/start", json!({})).await;
    let thread = &begun["result"]["thread"]["id"];
    let archive = json!({"threadId": thread, "clientRequestId": "k"});
    let about = json!({"threadId": thread});
    ask(&mut client, "thread/archive", archive.clone()).await;
    ask(&mut client, "thread/unarchive", about.clone()).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let start = json!({"threadId": thread, "input": input});
    ask(&mut client, "turn/start", start).await;
    let again = ask(&mut client, "thread/archive", archive).await;
    assert_eq!(again["result"], json!({}));
    let read = ask(&mut client, "thread/read", about).await;
    assert_eq!(read["result"]["thread"]["status"]["type"], "active");
    assert_eq!(threads(&mut client).await, 1);
}

/// One that comes twice at once finds what the first one made.
#[tokio::test]
async fn two_at_once_are_one() {
    let mut server = Stage::new().open();
    let mut one = connect(&mut server).await;
    let mut other = connect(&mut server).await;
    for (method, number) in [("thread/start", 1), ("thread/fork", 2)] {
        let mut params = json!({"clientRequestId": "k"});
        if method == "thread/fork" {
            let from = ask(&mut one, "thread/list", json!({})).await;
            params["threadId"] = from["result"]["data"][0]["id"].clone();
        }
        let ids = [
            one.request(method, params.clone()),
            other.request(method, params),
        ];
        let answers = [
            answer(&mut one, ids[0]).await,
            answer(&mut other, ids[1]).await,
        ];
        let [first, second] = answers.map(|it| it["result"]["thread"]["id"].clone());
        assert!(first.is_string(), "{method}");
        assert_eq!(first, second, "{method}");
        assert_eq!(threads(&mut one).await, number, "{method}");
    }
}

/// A thread that is gone is gone.
#[tokio::test]
async fn what_is_deleted_can_be_deleted_again() {
    let mut server = Stage::new().open();
    let mut client = connect(&mut server).await;
    let begun = ask(&mut client, "thread/start", json!({})).await;
    let thread = &begun["result"]["thread"]["id"];
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

/// Also at once, before what was deleted is out of the way.
#[tokio::test]
async fn what_is_deleted_is_made_anew() {
    let mut server = Stage::new().open();
    let mut client = connect(&mut server).await;
    let begin = json!({"clientRequestId": "k"});
    let begun = ask(&mut client, "thread/start", begin.clone()).await;
    let thread = begun["result"]["thread"]["id"].clone();
    for number in 0..20 {
        let delete = client.request("thread/delete", json!({"threadId": thread}));
        let start = client.request("thread/start", begin.clone());
        assert_eq!(answer(&mut client, delete).await["result"], json!({}));
        let begun = answer(&mut client, start).await;
        assert_eq!(begun["result"]["thread"]["id"], thread, "{begun}");
        let name = json!({"threadId": thread, "name": format!("{number}")});
        let named = ask(&mut client, "thread/name/set", name).await;
        assert_eq!(named["result"], json!({}), "{named}");
        assert_eq!(threads(&mut client).await, 1);
    }
}

/// The same where things really happen at once: each request of a thread finds what the one before it left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_deleted_is_made_anew_however_fast() {
    const ROUNDS: usize = 15;
    for ephemeral in [false, true] {
        let stage = Stage::new();
        let folder = stage.home.join("threads");
        let journal = LocalJournal::open(&raddle_store::Options { folder }).expect("a journal");
        let journal = Arc::new(journal);
        let script = crate::script::with_pages(journal.clone(), journal, &[]);
        let mut server = Server::open(stage.options(), script).expect("a server");
        let mut client = connect(&mut server).await;
        let begin = json!({"clientRequestId": "k", "ephemeral": ephemeral});
        let begun = ask(&mut client, "thread/start", begin.clone()).await;
        let thread = begun["result"]["thread"]["id"].clone();
        let about = json!({"threadId": thread});
        for round in 0..ROUNDS {
            let sent: Vec<(i64, i64)> = (0..4)
                .map(|_| {
                    let delete = client.request("thread/delete", about.clone());
                    (delete, client.request("thread/start", begin.clone()))
                })
                .collect();
            for (delete, start) in sent {
                let deleted = answer(&mut client, delete).await;
                assert_eq!(deleted["result"], json!({}), "{round}: {deleted}");
                let begun = answer(&mut client, start).await;
                assert_eq!(begun["result"]["thread"]["id"], thread, "{round}: {begun}");
            }
            let name = json!({"threadId": thread, "name": format!("{round}")});
            let named = ask(&mut client, "thread/name/set", name).await;
            assert_eq!(named["result"], json!({}), "{round}: {named}");
            let loaded = ask(&mut client, "thread/loaded/list", json!({})).await;
            assert_eq!(loaded["result"]["data"], json!([thread]), "{round}");
        }
        let read = ask(&mut client, "thread/read", about.clone()).await;
        let name = format!("{}", ROUNDS - 1);
        assert_eq!(read["result"]["thread"]["name"], name, "{read}");
        let listed = usize::from(!ephemeral);
        assert_eq!(threads(&mut client).await, listed);
        ask(&mut client, "thread/delete", about).await;
        let loaded = ask(&mut client, "thread/loaded/list", json!({})).await;
        assert_eq!(loaded["result"]["data"], json!([]));
    }
}

#[tokio::test]
async fn who_did_not_ask_for_it_is_refused() {
    let mut server = Stage::new().open();
    let mut plain = TestClient::connect_plainly(&mut server).await;
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
