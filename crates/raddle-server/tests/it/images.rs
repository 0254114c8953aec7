//! Images that users and tools send: stored once, shown to clients unchanged, and sent to the
//! model.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_agent::{NewImage, Threads};
use raddle_core::ports::{Blobs, Journal, ReadError};
use raddle_core::{
    Blob, Command, Event, Image, Input, InputMessage, ItemBody, ItemId, RecordBody, Seq, StartTurn,
    ThreadId, TurnId, TurnKind,
};
use raddle_server::Server;
use raddle_store::MemoryJournal;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::TestClient;
use crate::player::Harness;
use crate::script;

const GIF: &[u8] = b"GIF89a\x01\0\x01\0-a";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01-b";
const HUGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60";

fn url(media: &str, bytes: &[u8]) -> String {
    format!("data:{media};base64,{}", STANDARD.encode(bytes))
}

/// Opens a server, and returns its threads too.
fn opened(harness: &Harness, journal: &Arc<MemoryJournal>, says: &[&str]) -> (Server, Threads) {
    let mut threads_handle = None;
    let server = Server::open(harness.options(), |deps| {
        let threads = script::threads_of(journal.clone(), says)(deps);
        threads_handle = Some(threads.clone());
        threads
    });
    (server.expect("a server"), threads_handle.unwrap())
}

async fn until_turn_completed(client: &mut TestClient) -> Vec<Value> {
    let mut messages = vec![client.next().await];
    while messages.last().unwrap()["method"] != "turn/completed" {
        messages.push(client.next().await);
    }
    messages
}

/// Returns the last text of the agent.
fn answer(messages: &[Value]) -> &str {
    let turn = &messages.last().unwrap()["params"]["turn"];
    turn["items"][0]["text"].as_str().unwrap_or_default()
}

/// Returns the blobs that a thread's input names.
async fn blobs(journal: &MemoryJournal, thread: &Value) -> Vec<Blob> {
    let id: ThreadId = thread.as_str().unwrap().parse().unwrap();
    let records = journal.read(id, Seq::ZERO, usize::MAX).await.unwrap();
    let mut blobs = Vec::new();
    for record in &records {
        if let RecordBody::Event(event) = &record.body
            && let Event::InputAccepted(it) = &**event
            && let ItemBody::UserMessage(message) = &it.item.body
        {
            blobs.extend(message.input.iter().filter_map(|part| match part {
                Input::Image {
                    image: Image::Blob(blob),
                    ..
                } => Some(blob.clone()),
                _ => None,
            }));
        }
    }
    blobs
}

/// Returns the content of the first message of a thread in a response.
fn first_message(thread: &Value) -> &Value {
    &thread["turns"][0]["items"][0]["content"]
}

#[tokio::test]
async fn an_image_is_stored_until_its_last_thread_is_deleted() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let file = harness.workspace.join("b.png");
    fs::write(&file, PNG).unwrap();
    let path = file.display().to_string();
    let (mut first, _) = opened(&harness, &journal, &["heard"]);
    let mut client = TestClient::connect(&mut first).await;
    let thread = client.start_thread().await;
    let input = json!([
        {"type": "text", "text": "see", "text_elements": []},
        {"type": "image", "url": url("image/gif", GIF), "detail": "high"},
        {"type": "localImage", "path": path},
    ]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    // Later changes of the file have no effect.
    fs::remove_file(&file).unwrap();
    let messages = until_turn_completed(&mut client).await;
    let mut shown = input.clone();
    shown[2]["detail"] = Value::Null;
    for method in ["item/started", "item/completed"] {
        let notification = messages.iter().find(|it| it["method"] == method).unwrap();
        assert_eq!(notification["params"]["item"]["content"], shown, "{method}");
    }
    let model_text = format!("[{}] · [{}]", url("image/gif", GIF), url("image/png", PNG));
    assert_eq!(answer(&messages), model_text);
    let stored = blobs(&journal, &thread).await;
    assert_eq!(stored.len(), 2);

    // Another process, a fork, and a fork in memory show and read the same.
    let (mut second, threads) = opened(&harness, &journal, &["heard", "heard"]);
    let mut client = TestClient::connect(&mut second).await;
    let params = json!({"threadId": thread});
    let resumed = client
        .ask("thread/resume", params.clone())
        .await
        .expect("a thread");
    assert_eq!(*first_message(&resumed["thread"]), shown);
    assert_eq!(client.next().await["method"], "thread/goal/cleared");
    let mut forks = Vec::new();
    for ephemeral in [false, true] {
        let params = json!({"threadId": thread, "ephemeral": ephemeral});
        let forked = client.ask("thread/fork", params).await.expect("a fork");
        assert_eq!(*first_message(&forked["thread"]), shown);
        while client.next().await["method"] != "thread/started" {}
        let fork = forked["thread"]["id"].clone();
        let params = json!({"threadId": fork, "input": [{"type": "text", "text": "again"}]});
        client.ask("turn/start", params).await.expect("a turn");
        assert_eq!(
            answer(&until_turn_completed(&mut client).await),
            model_text,
            "ephemeral: {ephemeral}"
        );
        forks.push(fork);
    }
    for id in [&thread, &forks[0]] {
        let request = client.request("thread/delete", json!({"threadId": id}));
        while client.next().await["id"] != request {}
    }
    // Blobs are deleted after the response.
    threads.close().await;
    for blob in stored {
        let stored = journal.get(raddle_core::ThreadId::mint(), blob).await;
        assert_eq!(stored, Err(ReadError::NotFound));
    }
}

#[tokio::test]
async fn invalid_images_are_rejected() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let write = |name: &str, bytes: &[u8]| {
        let path = harness.workspace.join(name);
        fs::write(&path, bytes).unwrap();
        json!({"type": "localImage", "path": path})
    };
    // Sparse files: only their length is large.
    let long = |name: &str, bytes: u64| {
        let input = write(name, GIF);
        let file = fs::File::options()
            .write(true)
            .open(harness.workspace.join(name));
        file.unwrap().set_len(bytes).unwrap();
        input
    };
    let half = long("half.gif", 6 << 20);
    for (input, expected_error) in [
        (
            json!([{"type": "image", "url": "https://a/b.png"}]),
            "must be a `data:` URL in base64",
        ),
        (
            json!([{"type": "image", "url": url("image/png", b"<svg/>")}]),
            "send PNG, JPEG, GIF or WebP",
        ),
        (
            json!([write("a.txt", b"text")]),
            "a.txt is rejected: unsupported image format",
        ),
        (
            json!([long("large.gif", (10 << 20) + 1)]),
            "large.gif is rejected: images may have 10485760 bytes",
        ),
        (
            json!([write("huge.png", HUGE)]),
            "huge.png is rejected: it is 60000×60000 pixels",
        ),
        (
            json!([{"type": "image", "url": url("image/png", HUGE)}]),
            "60000×60000 pixels",
        ),
        (
            json!([half, half]),
            "images may have 10485760 bytes together",
        ),
        (
            json!([{"type": "localImage", "path": harness.path("none.png")}]),
            "there is no such file",
        ),
        (
            json!([{"type": "localImage", "path": harness.workspace}]),
            "it is a folder",
        ),
        (
            json!([{"type": "localImage", "path": "here.png"}]),
            "here.png cannot be read: its path must be absolute",
        ),
        (
            json!([{"type": "localImage", "path": "~/here.png"}]),
            "path must be absolute",
        ),
        (
            json!([{"type": "localImage", "path": format!("file://{}", harness.path("half.gif"))}]),
            "path must be absolute",
        ),
    ] {
        for (method, expected) in [("turn/start", Value::Null), ("turn/steer", json!("t"))] {
            let params = json!({"threadId": thread, "input": input, "expectedTurnId": expected});
            let refused = client.ask(method, params).await.expect_err("no image");
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains(expected_error), "{method}: {message}");
            assert_eq!(refused["code"], -32602);
            assert_eq!(
                refused["data"],
                json!({"input_error_code": "invalid_image"})
            );
        }
    }
}

/// A client may name any image of the user; closed paths stay closed, under any name.
#[tokio::test]
async fn an_image_on_a_closed_path_is_rejected() {
    let mut harness = Harness::new();
    harness.says = vec!["heard".to_owned()];
    fs::create_dir_all(&harness.home).unwrap();
    let own = harness.home.join("own.gif");
    let elsewhere = harness.home.parent().unwrap().join("elsewhere.gif");
    for file in [&own, &elsewhere] {
        fs::write(file, GIF).unwrap();
    }
    symlink(&own, harness.path("link.gif")).unwrap();
    symlink(&harness.home, harness.path("folder")).unwrap();
    fs::hard_link(&own, harness.path("second.gif")).unwrap();
    symlink(&elsewhere, harness.path("outside.gif")).unwrap();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let own = own.display().to_string();
    let links = [
        "link.gif",
        "folder/own.gif",
        "folder/none.gif",
        "second.gif",
    ];
    for path in links.map(|it| harness.path(it)).into_iter().chain([own]) {
        for (method, expected) in [("turn/start", Value::Null), ("turn/steer", json!("t"))] {
            let input = json!([{"type": "localImage", "path": path}]);
            let params = json!({"threadId": thread, "input": input, "expectedTurnId": expected});
            let refused = client.ask(method, params).await.expect_err(&path);
            assert_eq!(
                refused["data"]["errorInfo"], "closed_path",
                "{path}: {refused}"
            );
        }
    }
    let input = json!([{"type": "localImage", "path": harness.path("outside.gif")}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    let messages = until_turn_completed(&mut client).await;
    assert_eq!(answer(&messages), format!("[{}]", url("image/gif", GIF)));
}

#[tokio::test]
async fn a_tool_gives_images() {
    let large = "A".repeat(14 << 20);
    for (image, expected_text) in [
        (url("image/gif", GIF), format!("drawn · [{}]", url("image/gif", GIF))),
        (
            "https://a/b.gif".to_owned(),
            "The request failed: an image of the tool's result was rejected: the URL of an image must be a \
             `data:` URL in base64"
                .to_owned(),
        ),
        (
            format!("data:image/gif;base64,{large}"),
            "The request failed: an image of the tool's result was rejected: images may have 10485760 bytes \
             together; send fewer, or smaller ones"
                .to_owned(),
        ),
    ] {
        let mut harness = Harness::new();
        harness.says = vec!["calls draw {}".to_owned(), "heard".to_owned()];
        let mut server = harness.open();
        let mut client = TestClient::connect_experimental(&mut server).await;
        let draw = json!({"type": "function", "name": "draw", "description": "d", "inputSchema": {}});
        let response = client.ask("thread/start", json!({"dynamicTools": [draw]})).await;
        let thread = response.expect("a thread")["thread"]["id"].take();
        assert_eq!(client.next().await["method"], "thread/started");
        let params = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
        client.ask("turn/start", params).await.expect("a turn");
        let mut request = client.next().await;
        while request["method"] != "item/tool/call" {
            request = client.next().await;
        }
        let content = json!([{"type": "inputText", "text": "drawn"}, {"type": "inputImage", "imageUrl": image}]);
        client.send(&json!({"id": request["id"], "result": {"contentItems": content, "success": true}}));
        let messages = until_turn_completed(&mut client).await;
        assert_eq!(answer(&messages), expected_text);
        let completed = messages.iter().find(|it| it["method"] == "item/completed").unwrap();
        let items = client.ask("thread/items/list", json!({"threadId": thread})).await;
        let items = items.expect("items");
        let listed = &items["data"][1]["item"];
        assert_eq!(completed["params"]["item"]["contentItems"], listed["contentItems"]);
        let is_shown = listed["contentItems"] == content;
        assert_eq!(is_shown, expected_text.starts_with("drawn"), "{expected_text}");
    }
}

/// Passes an image to a thread, without the wire.
async fn start_turn(threads: &Threads, id: ThreadId, image: Image) {
    let start = StartTurn {
        turn: TurnId::mint(),
        kind: TurnKind::Work,
        message: Some(InputMessage {
            item: ItemId::mint(),
            input: vec![Input::Image {
                image,
                detail: None,
                path: None,
            }],
            client_id: None,
            hook_prompt: None,
        }),
        change: Box::default(),
        briefs: Vec::new(),
        principal: None,
        root: None,
        output_schema: None,
    };
    let (reply, answer) = oneshot::channel();
    let start = Command::StartTurn(Box::new(start));
    threads
        .send_command(id, start, |done: raddle_agent::CommandResult<'_>| {
            drop(reply.send(done.map(|done| done.outcome)))
        })
        .await;
    answer.await.unwrap().expect("a turn");
}

/// Images do not make a response exceed its limit.
#[tokio::test]
async fn pages_with_images_end_early() {
    let harness = Harness::new();
    let journal = Arc::new(MemoryJournal::new());
    let (mut server, threads) = opened(&harness, &journal, &["ok"; 2]);
    let mut client = TestClient::connect_experimental(&mut server).await;
    let thread = client.start_thread().await;
    // A subscriber would receive each image twice.
    let params = json!({"threadId": thread});
    client
        .ask("thread/unsubscribe", params)
        .await
        .expect("an end");
    let id: ThreadId = thread.as_str().unwrap().parse().unwrap();
    for number in 0..2 {
        let mut bytes = GIF.to_vec();
        bytes.resize(13 << 18, number);
        let new_image = NewImage::of(bytes).expect("an image");
        let image = threads.keep(id, new_image).await.expect("kept");
        start_turn(&threads, id, image).await;
        while client.next().await["params"]["status"]["type"] != "idle" {}
    }
    for (method, view, page_max) in [
        ("thread/items/list", Value::Null, 2),
        ("thread/turns/list", json!("summary"), 1),
    ] {
        let mut cursor = Value::Null;
        let mut ids = Vec::new();
        loop {
            let params = json!({"threadId": thread, "cursor": cursor, "itemsView": view});
            let page = client.ask(method, params).await.expect("a page");
            let data = page["data"].as_array().unwrap();
            assert!(
                !data.is_empty() && data.len() <= page_max,
                "{method} {view}: {}",
                data.len()
            );
            let id = |it: &Value| {
                if it["item"].is_object() {
                    it["item"]["id"].clone()
                } else {
                    it["id"].clone()
                }
            };
            ids.extend(data.iter().map(id));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let count = ids.len();
        ids.sort_by_key(ToString::to_string);
        ids.dedup();
        assert_eq!(
            (ids.len(), count),
            if view.is_null() { (4, 4) } else { (2, 2) },
            "{method} {view}"
        );
    }
}
