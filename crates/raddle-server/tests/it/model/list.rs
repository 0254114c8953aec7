//! `model/list`

use raddle_server::{Options, Server};
use serde_json::json;

use crate::client::Client;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("model/list").await;
}

#[tokio::test]
async fn a_model_of_the_command_line_is_the_default() {
    let stage = Stage::new();
    std::fs::write(stage.config(), "model = \"file\"\n").unwrap();
    let mut server = Server::open(Options {
        overrides: vec!["model=flag".parse().unwrap()],
        ..stage.options()
    })
    .expect("a server");
    let mut client = Client::connect(&mut server).await;
    let listed = client.ask("model/list", json!({})).await.unwrap();
    assert_eq!(listed["data"][0]["id"], "flag");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
}
