//! `fs/readFile`

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{NamedPipe, StalledClient, TestClient, base64};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/read_file").await;
}

#[tokio::test]
async fn any_bytes_come_back_as_they_are() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    std::fs::write(harness.path("file"), &bytes).unwrap();
    let read = client
        .ask("fs/readFile", json!({"path": harness.path("file")}))
        .await;
    assert_eq!(read, Ok(json!({"dataBase64": base64(&bytes)})));
}

/// The largest file that fits into a response of 32 MiB.
const BYTES_MAX: u64 = ((32 << 20) - (8 << 10)) / 4 * 3;

#[tokio::test]
async fn a_file_is_read_if_its_answer_fits_into_a_message() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let file = std::fs::File::create(harness.path("file")).unwrap();
    let params = json!({"path": harness.path("file")});
    file.set_len(BYTES_MAX).unwrap();
    let read = client.ask("fs/readFile", params.clone()).await.unwrap();
    let base64_bytes = read["dataBase64"].as_str().map(|text| text.len() as u64);
    assert_eq!(base64_bytes, Some(BYTES_MAX / 3 * 4));

    file.set_len(BYTES_MAX + 1).unwrap();
    let refused = client.ask("fs/readFile", params).await.unwrap_err();
    let (bytes, path) = (BYTES_MAX + 1, harness.path("file"));
    let message = format!(
        "{path} has {bytes} bytes; at most {BYTES_MAX} fit into an answer of 33554432 bytes"
    );
    assert_eq!(
        refused,
        json!({"code": -32600, "message": message, "data": {
            "errorInfo": "file_too_large", "bytes": bytes, "bytesMax": BYTES_MAX,
        }})
    );
}

#[tokio::test]
async fn a_file_with_a_wrong_size_is_read() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    // The kernel reports the same size for all of these. Its view of processes is closed.
    let path = "/sys/kernel/uevent_seqnum";
    assert_eq!(std::fs::metadata(path).unwrap().len(), 4096);
    let read = client.ask("fs/readFile", json!({"path": path})).await;
    let read = read.unwrap()["dataBase64"].as_str().unwrap().len();
    assert!(read > 0 && read < 100, "{read}");
}

#[tokio::test]
async fn special_files_are_rejected() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let _pipe = NamedPipe::new(harness.path("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(harness.path("socket")).unwrap();
    std::os::unix::fs::symlink("pipe", harness.path("link")).unwrap();
    let paths = ["pipe", "link", "socket"].map(|name| harness.path(name));
    for path in paths.into_iter().chain(["/dev/zero".to_owned()]) {
        let copy =
            json!({"sourcePath": path, "destinationPath": harness.path("copy"), "recursive": true});
        let write = json!({"path": path, "dataBase64": ""});
        for (method, params) in [
            ("fs/readFile", json!({"path": path})),
            ("fs/writeFile", write),
            ("fs/copy", copy),
        ] {
            if method == "fs/copy" && path.ends_with("link") {
                // A link is copied as a link.
                continue;
            }
            let refused = client.ask(method, params).await.unwrap_err();
            assert_eq!(refused["code"], -32600, "{refused}");
            assert_eq!(refused["data"]["errorInfo"], "special_file", "{refused}");
            let message = refused["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{path} is not a regular file")));
        }
    }
    assert!(!std::fs::exists(harness.path("copy")).unwrap());
}

/// Responses are made only when there is capacity for them: a client that does not read costs one
/// of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_responses_wait_for_capacity() {
    const FILES: usize = 12;
    const BYTES: u64 = 3 << 20;
    let harness = Harness::new();
    let mut server = harness.open();
    let mut other = TestClient::connect(&mut server).await;
    let mut stalled = StalledClient::connect(&mut server, 1 << 20).await;
    for number in 0..FILES {
        let path = harness.path(&format!("file{number}"));
        std::fs::File::create(&path)
            .unwrap()
            .set_len(BYTES)
            .unwrap();
        stalled.request("fs/readFile", json!({"path": path}));
    }
    let answer_bytes = (BYTES / 3 * 4) as usize + 1024;
    stalled.when_queued().await;
    for _ in 0..200 {
        let params = json!({"path": harness.path("file0")});
        other
            .ask("fs/getMetadata", params)
            .await
            .expect("an answer");
        assert!(stalled.outgoing.queued_bytes() <= answer_bytes);
    }
    let mut answers = 0;
    while answers < FILES {
        let frames = stalled.take_queued().await;
        assert_eq!(frames.len(), 1, "one at a time");
        assert!(frames[0]["result"]["dataBase64"].is_string());
        answers += 1;
    }
}

/// A client that does not read delays itself for a while, gets no wrong data, and delays no other
/// client.
#[tokio::test(start_paused = true)]
async fn a_read_that_waits_for_its_client_lets_others_write() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut other = TestClient::connect(&mut server).await;
    let mut stalled = StalledClient::connect(&mut server, 64 << 10).await;
    for name in ["a", "b", "c"] {
        std::fs::write(harness.path(name), "old").unwrap();
    }
    stalled.request("fs/readFile", json!({"path": harness.path("a")}));
    stalled.when_queued().await;
    // There is no capacity for these.
    for name in ["a", "b", "c"] {
        stalled.request("fs/readFile", json!({"path": harness.path(name)}));
    }
    // The paused clock moves only when all of them have probed their files.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let started = tokio::time::Instant::now();
    let write = |name| json!({"path": harness.path(name), "dataBase64": base64("newer")});
    assert_eq!(other.ask("fs/writeFile", write("c")).await, Ok(json!({})));
    assert_eq!(started.elapsed(), Duration::ZERO, "the other waited");

    // Its own write runs when the read has waited long enough; the clock is paused.
    stalled.request("fs/writeFile", write("a"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(std::fs::read_to_string(harness.path("a")).unwrap(), "newer");

    let (mut answers, mut refusals) = (Vec::new(), Vec::new());
    while answers.len() + refusals.len() < 5 {
        for mut answer in stalled.take_queued().await {
            match answer.get_mut("result") {
                Some(result) => answers.push(result["dataBase64"].take()),
                None => refusals.push(answer["error"]["code"].take()),
            }
        }
    }
    let (old, written) = (Value::from(base64("old")), Value::Null);
    assert_eq!(
        answers,
        [old.clone(), written, old],
        "as it was when it was asked for"
    );
    assert_eq!(refusals, [-32001, -32001], "to be asked for again");
}

#[tokio::test]
async fn a_link_is_followed() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::write(harness.path("file"), "hello").unwrap();
    std::os::unix::fs::symlink("file", harness.path("link")).unwrap();
    let read = client
        .ask("fs/readFile", json!({"path": harness.path("link")}))
        .await;
    assert_eq!(read, Ok(json!({"dataBase64": base64("hello")})));
}
