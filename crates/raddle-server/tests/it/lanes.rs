//! Requests on one resource run in the order of arrival, however many are sent at once.

use serde_json::{Value, json};

use crate::client::{ConfigWriteLock, TestClient, base64, id_of, is_slow_answer};
use crate::player::Harness;

const WRITES: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_to_one_path_keep_their_order_and_a_read_sees_the_last() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let path = harness.path("file");
    std::fs::create_dir(harness.path("beside")).unwrap();
    let spellings =
        ["file", "/file", "./file", "beside/../file"].map(|name| harness.path("") + name);
    for number in 0..WRITES {
        let data = base64(number.to_string());
        let path = &spellings[number % spellings.len()];
        client.request("fs/writeFile", json!({"path": path, "dataBase64": data}));
    }
    let read = client.request("fs/readFile", json!({"path": path}));

    let mut last = 0;
    for _ in 0..WRITES {
        let answer = client.next().await;
        assert_eq!(answer["result"], json!({}), "{answer}");
        assert!(id_of(&answer) > last, "{answer} after {last}");
        last = id_of(&answer);
    }
    let answer = client.next().await;
    assert_eq!(
        answer,
        json!({"id": read, "result": {"dataBase64": base64((WRITES - 1).to_string())}})
    );
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        (WRITES - 1).to_string()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_sees_the_writes_before_it_and_none_after() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let path = harness.path("file");
    let mut expected = Vec::new();
    for number in 0..100 {
        let data = base64(number.to_string());
        client.request("fs/writeFile", json!({"path": path, "dataBase64": data}));
        let id = client.request("fs/readFile", json!({"path": path}));
        expected.push(json!({"id": id, "result": {"dataBase64": data}}));
    }
    let mut reads = Vec::new();
    for _ in 0..200 {
        let answer = client.next().await;
        if answer["result"] != json!({}) {
            reads.push(answer);
        }
    }
    assert_eq!(reads, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_and_folders_keep_their_order_with_writes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let (folder, file, copy) = (
            harness.path("folder"),
            harness.path("folder/file"),
            harness.path("copy"),
        );
        let data = base64(format!("{number}").repeat(10_000));
        client.request("fs/createDirectory", json!({"path": folder}));
        client.request("fs/writeFile", json!({"path": file, "dataBase64": data}));
        client.request(
            "fs/copy",
            json!({"sourcePath": folder, "destinationPath": copy, "recursive": true}),
        );
        client.request("fs/remove", json!({"path": folder}));
        let read = json!({"path": harness.path("copy/file")});
        let id = client.request("fs/readFile", read);
        expected.push(json!({"id": id, "result": {"dataBase64": data}}));
    }
    let mut reads = Vec::new();
    for _ in 0..100 {
        let answer = client.next().await;
        assert!(answer["error"].is_null(), "{answer}");
        if answer["result"] != json!({}) {
            reads.push(answer);
        }
    }
    assert_eq!(reads, expected);
}

#[tokio::test]
async fn a_slow_lane_holds_up_only_itself() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut other = TestClient::connect(&mut server).await;
    let slow = ConfigWriteLock::new(&harness);
    let write = slow.request(&mut client).await;
    // Waits for the write, also on another connection.
    let read = other.request("config/read", json!({}));

    let quick = json!({"path": harness.path("quick"), "dataBase64": ""});
    for client in [&mut client, &mut other] {
        let written = client.ask("fs/writeFile", quick.clone()).await;
        assert_eq!(written, Ok(json!({})));
    }
    drop(slow);
    assert!(is_slow_answer(&client.next().await, write));
    let answer = other.next().await;
    assert_eq!(id_of(&answer), read);
    assert_eq!(answer["result"]["config"], json!({"slow": true}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_configuration_is_read_as_it_was_just_written() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for number in 0..50 {
        let model = json!({"keyPath": "model", "value": format!("m{number:02}"), "mergeStrategy": "replace"});
        client.request("config/value/write", model);
        client.request("config/read", json!({}));
    }
    let mut models: Vec<Value> = Vec::new();
    for _ in 0..100 {
        let answer = client.next().await;
        assert!(answer["error"].is_null(), "{answer}");
        if !answer["result"]["config"].is_null() {
            models.push(answer["result"]["config"]["model"].clone());
        }
    }
    let expected: Vec<Value> = (0..50)
        .map(|number| format!("m{number:02}").into())
        .collect();
    assert_eq!(models, expected);
}
