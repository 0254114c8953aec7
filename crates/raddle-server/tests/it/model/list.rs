//! `model/list`

use raddle_server::{Options, Server};
use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("model/list").await;
}

#[tokio::test]
async fn a_model_of_the_command_line_is_the_default() {
    let harness = Harness::new();
    std::fs::write(harness.config(), "model = \"file\"\n").unwrap();
    let mut server = Server::open(
        Options {
            overrides: vec!["model=flag".parse().unwrap()],
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let listed = client.ask("model/list", json!({})).await.unwrap();
    assert_eq!(listed["data"][0]["id"], "flag");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_model_that_was_just_written_by_hand_is_listed() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for name in ["one", "two", "three"] {
        std::fs::write(harness.config(), format!("model = \"{name}\"\n")).unwrap();
        let listed = client.ask("model/list", json!({})).await.unwrap();
        assert_eq!(listed["data"][0]["id"], name);
    }
    // An unreadable file leaves the last configuration in force.
    std::fs::write(harness.config(), "model = \n").unwrap();
    let listed = client.ask("model/list", json!({})).await.unwrap();
    assert_eq!(listed["data"][0]["id"], "three");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_model_written_just_before_is_listed() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let name = format!("m{number}");
        let edit = json!({"keyPath": "model", "value": name, "mergeStrategy": "replace"});
        client.request("config/value/write", edit);
        client.request("model/list", json!({}));
        expected.push(name);
    }
    let mut listed = Vec::new();
    for _ in 0..40 {
        let answer = client.next().await;
        listed.extend(
            answer["result"]["data"][0]["id"]
                .as_str()
                .map(str::to_owned),
        );
    }
    assert_eq!(listed, expected);
}
