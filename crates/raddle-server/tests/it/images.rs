//! Images that users and tools send: kept once, shown to clients as they came, and read by the model.

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
use crate::player::Stage;
use crate::script;

const GIF: &[u8] = b"GIF89a\x01\0\x01\0-a";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01-b";
const HUGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60";

fn url(media: &str, bytes: &[u8]) -> String {
    format!("data:{media};base64,{}", STANDARD.encode(bytes))
}

/// A server, and the threads behind it.
fn opened(stage: &Stage, journal: &Arc<MemoryJournal>, says: &[&str]) -> (Server, Threads) {
    let mut kept = None;
    let server = Server::open(stage.options(), |ground| {
        let threads = script::threads_of(journal.clone(), says)(ground);
        kept = Some(threads.clone());
        threads
    });
    (server.expect("a server"), kept.unwrap())
}

async fn ended(client: &mut TestClient) -> Vec<Value> {
    let mut heard = vec![client.next().await];
    while heard.last().unwrap()["method"] != "turn/completed" {
        heard.push(client.next().await);
    }
    heard
}

/// What the agent said last.
fn answer(heard: &[Value]) -> &str {
    let turn = &heard.last().unwrap()["params"]["turn"];
    turn["items"][0]["text"].as_str().unwrap_or_default()
}

/// The blobs that a thread's input names.
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

/// The content of the first message of a thread, as an answer shows it.
fn first_message(thread: &Value) -> &Value {
    &thread["turns"][0]["items"][0]["content"]
}

#[tokio::test]
async fn an_image_is_kept_and_read_again_and_goes_with_its_last_thread() {
    let stage = Stage::new();
    let journal = Arc::new(MemoryJournal::new());
    let file = stage.workspace.join("b.png");
    fs::write(&file, PNG).unwrap();
    let path = file.display().to_string();
    let (mut first, _) = opened(&stage, &journal, &["heard"]);
    let mut client = TestClient::connect(&mut first).await;
    let thread = client.start_thread().await;
    let input = json!([
        {"type": "text", "text": "see", "text_elements": []},
        {"type": "image", "url": url("image/gif", GIF), "detail": "high"},
        {"type": "localImage", "path": path},
    ]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    // What the file holds later does not matter.
    fs::remove_file(&file).unwrap();
    let heard = ended(&mut client).await;
    let mut shown = input.clone();
    shown[2]["detail"] = Value::Null;
    for word in ["item/started", "item/completed"] {
        let told = heard.iter().find(|it| it["method"] == word).unwrap();
        assert_eq!(told["params"]["item"]["content"], shown, "{word}");
    }
    let seen = format!("[{}] · [{}]", url("image/gif", GIF), url("image/png", PNG));
    assert_eq!(answer(&heard), seen);
    let kept = blobs(&journal, &thread).await;
    assert_eq!(kept.len(), 2);

    // Another process, a fork, and a fork in memory show and read the same.
    let (mut second, threads) = opened(&stage, &journal, &["heard", "heard"]);
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
            answer(&ended(&mut client).await),
            seen,
            "ephemeral: {ephemeral}"
        );
        forks.push(fork);
    }
    for id in [&thread, &forks[0]] {
        let asked = client.request("thread/delete", json!({"threadId": id}));
        while client.next().await["id"] != asked {}
    }
    // What was deleted is removed behind the answer.
    threads.close().await;
    for blob in kept {
        assert_eq!(journal.get(blob).await, Err(ReadError::NotFound));
    }
}

#[tokio::test]
async fn what_is_no_image_is_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let write = |name: &str, bytes: &[u8]| {
        let path = stage.workspace.join(name);
        fs::write(&path, bytes).unwrap();
        json!({"type": "localImage", "path": path})
    };
    // Files with holes: of these only their length is large.
    let long = |name: &str, bytes: u64| {
        let input = write(name, GIF);
        let file = fs::File::options()
            .write(true)
            .open(stage.workspace.join(name));
        file.unwrap().set_len(bytes).unwrap();
        input
    };
    let half = long("half.gif", 6 << 20);
    for (input, wanted) in [
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
            "a.txt is not taken: it is no image",
        ),
        (
            json!([long("large.gif", (10 << 20) + 1)]),
            "large.gif is not taken: images may have 10485760 bytes",
        ),
        (
            json!([write("huge.png", HUGE)]),
            "huge.png is not taken: it is 60000×60000 pixels",
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
            json!([{"type": "localImage", "path": stage.path("none.png")}]),
            "there is no such file",
        ),
        (
            json!([{"type": "localImage", "path": stage.workspace}]),
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
            json!([{"type": "localImage", "path": format!("file://{}", stage.path("half.gif"))}]),
            "path must be absolute",
        ),
    ] {
        for (method, expected) in [("turn/start", Value::Null), ("turn/steer", json!("t"))] {
            let params = json!({"threadId": thread, "input": input, "expectedTurnId": expected});
            let refused = client.ask(method, params).await.expect_err("no image");
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains(wanted), "{method}: {message}");
            assert_eq!(refused["code"], -32602);
            assert_eq!(
                refused["data"],
                json!({"input_error_code": "invalid_image"})
            );
        }
    }
}

/// A client may name any picture of the user's; what is closed stays so, by whatever name.
#[tokio::test]
async fn an_image_is_not_read_from_what_is_closed() {
    let mut stage = Stage::new();
    stage.says = vec!["heard".to_owned()];
    fs::create_dir_all(&stage.home).unwrap();
    let own = stage.home.join("own.gif");
    let elsewhere = stage.home.parent().unwrap().join("elsewhere.gif");
    for file in [&own, &elsewhere] {
        fs::write(file, GIF).unwrap();
    }
    symlink(&own, stage.path("link.gif")).unwrap();
    symlink(&stage.home, stage.path("folder")).unwrap();
    fs::hard_link(&own, stage.path("second.gif")).unwrap();
    symlink(&elsewhere, stage.path("outside.gif")).unwrap();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let own = own.display().to_string();
    let links = [
        "link.gif",
        "folder/own.gif",
        "folder/none.gif",
        "second.gif",
    ];
    for path in links.map(|it| stage.path(it)).into_iter().chain([own]) {
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
    let input = json!([{"type": "localImage", "path": stage.path("outside.gif")}]);
    let params = json!({"threadId": thread, "input": input});
    client.ask("turn/start", params).await.expect("a turn");
    let heard = ended(&mut client).await;
    assert_eq!(answer(&heard), format!("[{}]", url("image/gif", GIF)));
}

#[tokio::test]
async fn a_tool_gives_images() {
    let large = "A".repeat(14 << 20);
    for (image, said) in [
        (url("image/gif", GIF), format!("drawn · [{}]", url("image/gif", GIF))),
        (
            "https://a/b.gif".to_owned(),
            "No answer could be had: an image that the tool gave is not taken: the URL of an image must be a \
             `data:` URL in base64"
                .to_owned(),
        ),
        (
            format!("data:image/gif;base64,{large}"),
            "No answer could be had: an image that the tool gave is not taken: images may have 10485760 bytes \
             together; send fewer, or smaller ones"
                .to_owned(),
        ),
    ] {
        let mut stage = Stage::new();
        stage.says = vec!["calls draw {}".to_owned(), "heard".to_owned()];
        let mut server = stage.open();
        let mut client = TestClient::connect_boldly(&mut server).await;
        let draw = json!({"type": "function", "name": "draw", "description": "d", "inputSchema": {}});
        let begun = client.ask("thread/start", json!({"dynamicTools": [draw]})).await;
        let thread = begun.expect("a thread")["thread"]["id"].take();
        assert_eq!(client.next().await["method"], "thread/started");
        let params = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
        client.ask("turn/start", params).await.expect("a turn");
        let mut asked = client.next().await;
        while asked["method"] != "item/tool/call" {
            asked = client.next().await;
        }
        let content = json!([{"type": "inputText", "text": "drawn"}, {"type": "inputImage", "imageUrl": image}]);
        client.send(&json!({"id": asked["id"], "result": {"contentItems": content, "success": true}}));
        let heard = ended(&mut client).await;
        assert_eq!(answer(&heard), said);
        let told = heard.iter().find(|it| it["method"] == "item/completed").unwrap();
        let items = client.ask("thread/items/list", json!({"threadId": thread})).await;
        let items = items.expect("items");
        let listed = &items["data"][1]["item"];
        assert_eq!(told["params"]["item"]["contentItems"], listed["contentItems"]);
        let is_shown = listed["contentItems"] == content;
        assert_eq!(is_shown, said.starts_with("drawn"), "{said}");
    }
}

/// Hands a thread an image, past the wire.
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

/// Images do not make an answer larger than it may be.
#[tokio::test]
async fn pages_with_images_end_early() {
    let stage = Stage::new();
    let journal = Arc::new(MemoryJournal::new());
    let (mut server, threads) = opened(&stage, &journal, &["ok"; 2]);
    let mut client = TestClient::connect_boldly(&mut server).await;
    let thread = client.start_thread().await;
    // Who hears of the thread would be told each image twice.
    let params = json!({"threadId": thread});
    client
        .ask("thread/unsubscribe", params)
        .await
        .expect("an end");
    let id: ThreadId = thread.as_str().unwrap().parse().unwrap();
    for at in 0..2 {
        let mut bytes = GIF.to_vec();
        bytes.resize(13 << 18, at);
        let picture = NewImage::of(bytes).expect("an image");
        let image = threads.keep(id, picture).await.expect("kept");
        start_turn(&threads, id, image).await;
        while client.next().await["params"]["status"]["type"] != "idle" {}
    }
    for (method, view, most) in [
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
                !data.is_empty() && data.len() <= most,
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
