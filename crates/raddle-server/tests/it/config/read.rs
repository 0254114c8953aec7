//! `config/read`

use raddle_server::{Options, Server};
use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("config/read").await;
}

#[tokio::test]
async fn each_value_comes_from_the_strongest_layer_that_has_it() {
    let harness = Harness::new();
    std::fs::write(
        harness.system_config(),
        "service_tier = 1\nfile_opener = 1\npersonality = 1\n[tui]\nx = 1\ny = 1\n",
    )
    .unwrap();
    std::fs::write(
        harness.config(),
        "file_opener = 2\npersonality = 2\n[tui]\ny = 2\n",
    )
    .unwrap();
    let mut server = Server::open(
        Options {
            overrides: vec![
                "personality=2".parse().unwrap(),
                "personality=3".parse().unwrap(),
                "tui.z=3".parse().unwrap(),
            ],
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let read = client
        .ask("config/read", json!({"includeLayers": true}))
        .await
        .unwrap();
    assert_eq!(
        read["config"],
        json!({"service_tier": 1, "file_opener": 2, "personality": 3, "tui": {"x": 1, "y": 2, "z": 3}})
    );
    for (key, layer) in [
        ("service_tier", "system"),
        ("file_opener", "user"),
        ("personality", "sessionFlags"),
        ("tui.x", "system"),
        ("tui.y", "user"),
        ("tui.z", "sessionFlags"),
    ] {
        assert_eq!(read["origins"][key]["name"]["type"], layer, "{key}");
    }
    let layers: Vec<_> = read["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| &layer["name"]["type"])
        .collect();
    assert_eq!(layers, ["sessionFlags", "user", "system"]);
}

#[tokio::test]
async fn edits_by_hand_are_noticed_at_once() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    // A file system's clock may be coarse, or another machine's: every edit gets the same time. It
    // lies ahead so that a slow run of this test does not reach it.
    let time = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    for number in 10..60 {
        std::fs::write(
            harness.config(),
            format!("model_context_window = {number}\n"),
        )
        .unwrap();
        let file = std::fs::File::options()
            .append(true)
            .open(harness.config())
            .unwrap();
        file.set_modified(time).unwrap();
        let read = client.ask("config/read", json!({})).await.unwrap();
        assert_eq!(read["config"]["model_context_window"], number);
    }
}

#[test]
fn a_file_that_is_not_toml_stops_the_start() {
    let harness = Harness::new();
    // The line may contain a key.
    std::fs::write(harness.config(), "model = 'm'\ntoken = \"sekret\n").unwrap();
    let error =
        Server::open(harness.options(), crate::script::threads(&[])).expect_err("no server");
    let error = error.to_string();
    assert!(
        error.contains("config.toml is not valid TOML: line 2: "),
        "{error}"
    );
    assert!(!error.contains("sekret"), "{error}");
}
