//! `config/value/write`

use std::os::unix::fs::PermissionsExt;

use raddle_server::{Options, Server};
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("config/value/write").await;
}

fn replace(key: &str, value: impl Into<Value>) -> Value {
    json!({"keyPath": key, "value": value.into(), "mergeStrategy": "replace"})
}

#[tokio::test]
async fn comments_and_order_stay() {
    let harness = Harness::new();
    std::fs::write(
        harness.config(),
        "# Mine.\nservice_tier = 1\nmodel = \"a\" # the good one\n\n# Tools.\n[tui]\nx = [\n  1, # one\n]\n",
    )
    .unwrap();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    client
        .ask("config/value/write", replace("model", "b"))
        .await
        .expect("a write");
    client
        .ask("config/value/write", replace("tui.y", true))
        .await
        .expect("a write");
    let after = "# Mine.\nservice_tier = 1\nmodel = \"b\" # the good one\n\n# Tools.\n[tui]\nx = [\n  1, # one\n]\ny = true\n";
    assert_eq!(std::fs::read_to_string(harness.config()).unwrap(), after);
}

#[tokio::test]
async fn a_write_reports_that_the_command_line_overrides_it() {
    let harness = Harness::new();
    let mut server = Server::open(
        Options {
            overrides: vec!["model=mine".parse().unwrap()],
            ..harness.options()
        },
        crate::script::threads(&[]),
    )
    .expect("a server");
    let mut client = TestClient::connect(&mut server).await;
    let written = client
        .ask("config/value/write", replace("model", "other"))
        .await
        .unwrap();
    assert_eq!(written["status"], "okOverridden");
    assert_eq!(written["overriddenMetadata"]["effectiveValue"], "mine");
    assert_eq!(
        written["overriddenMetadata"]["overridingLayer"]["name"]["type"],
        "sessionFlags"
    );
    assert_eq!(
        std::fs::read_to_string(harness.config()).unwrap(),
        "model = \"other\"\n"
    );
    let read = client.ask("config/read", json!({})).await.unwrap();
    assert_eq!(read["config"]["model"], "mine");
}

#[tokio::test]
async fn a_new_file_is_private_and_an_old_one_keeps_its_mode_and_its_link() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    client
        .ask("config/value/write", replace("model", "a"))
        .await
        .expect("a write");
    assert_eq!(mode(&harness.config()), 0o600);

    // Some users keep the file among their dotfiles.
    let real = harness.workspace.join("dotfile.toml");
    std::fs::rename(harness.config(), &real).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&real, harness.config()).unwrap();
    client
        .ask("config/value/write", replace("model", "b"))
        .await
        .expect("a write");
    assert!(
        std::fs::symlink_metadata(harness.config())
            .unwrap()
            .is_symlink()
    );
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "model = \"b\"\n");
    assert_eq!(mode(&real), 0o644);
}

#[tokio::test]
async fn a_missing_home_is_created() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::remove_dir(&harness.home).unwrap();
    client
        .ask("config/value/write", replace("model", "a"))
        .await
        .expect("a write");
    assert_eq!(
        std::fs::read_to_string(harness.config()).unwrap(),
        "model = \"a\"\n"
    );
}

/// Increments a number in the configuration, with as many retries as needed.
async fn count(mut client: TestClient) {
    loop {
        let read = client
            .ask("config/read", json!({"includeLayers": true}))
            .await
            .unwrap();
        let number = read["config"]["model_context_window"].as_i64().unwrap();
        let mut params = replace("model_context_window", number + 1);
        params["expectedVersion"] = read["layers"][0]["version"].clone();
        match client.ask("config/value/write", params).await {
            Ok(_) => return,
            Err(error) => assert_eq!(
                error["data"]["config_write_error_code"],
                "configVersionConflict"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_the_same_time_lose_no_update() {
    let harness = Harness::new();
    // The number keeps its length, so that only its digits distinguish the versions.
    std::fs::write(harness.config(), "model_context_window = 10\n").unwrap();
    // Two servers share the home, as an editor's and a terminal's would.
    let mut servers = [harness.open(), harness.open()];
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let client = TestClient::connect(&mut servers[number % 2]).await;
        writers.spawn(count(client));
    }
    writers.join_all().await;
    assert_eq!(
        std::fs::read_to_string(harness.config()).unwrap(),
        "model_context_window = 30\n"
    );
}
