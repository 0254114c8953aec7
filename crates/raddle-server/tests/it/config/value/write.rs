//! `config/value/write`

use std::os::unix::fs::PermissionsExt;

use raddle_server::{Options, Server};
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("config/value/write").await;
}

fn replace(key: &str, value: impl Into<Value>) -> Value {
    json!({"keyPath": key, "value": value.into(), "mergeStrategy": "replace"})
}

#[tokio::test]
async fn comments_and_order_stay() {
    let stage = Stage::new();
    std::fs::write(
        stage.config(),
        "# Mine.\nservice_tier = 1\nmodel = \"a\" # the good one\n\n# Tools.\n[tui]\nx = [\n  1, # one\n]\n",
    )
    .unwrap();
    let mut server = stage.open();
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
    assert_eq!(std::fs::read_to_string(stage.config()).unwrap(), after);
}

#[tokio::test]
async fn a_value_that_the_command_line_overrides_is_written_and_said_so() {
    let stage = Stage::new();
    let mut server = Server::open(
        Options {
            overrides: vec!["model=mine".parse().unwrap()],
            ..stage.options()
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
        std::fs::read_to_string(stage.config()).unwrap(),
        "model = \"other\"\n"
    );
    let read = client.ask("config/read", json!({})).await.unwrap();
    assert_eq!(read["config"]["model"], "mine");
}

#[tokio::test]
async fn a_new_file_is_private_and_an_old_one_keeps_its_mode_and_its_link() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    client
        .ask("config/value/write", replace("model", "a"))
        .await
        .expect("a write");
    assert_eq!(mode(&stage.config()), 0o600);

    // Some people keep the file among their dotfiles.
    let real = stage.workspace.join("dotfile.toml");
    std::fs::rename(stage.config(), &real).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&real, stage.config()).unwrap();
    client
        .ask("config/value/write", replace("model", "b"))
        .await
        .expect("a write");
    assert!(
        std::fs::symlink_metadata(stage.config())
            .unwrap()
            .is_symlink()
    );
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "model = \"b\"\n");
    assert_eq!(mode(&real), 0o644);
}

#[tokio::test]
async fn a_home_that_is_not_there_is_made() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::remove_dir(&stage.home).unwrap();
    client
        .ask("config/value/write", replace("model", "a"))
        .await
        .expect("a write");
    assert_eq!(
        std::fs::read_to_string(stage.config()).unwrap(),
        "model = \"a\"\n"
    );
}

/// Adds one to a number in the configuration, as often as it takes.
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
    let stage = Stage::new();
    // The number keeps its length, so that only its digits tell one version from the next.
    std::fs::write(stage.config(), "model_context_window = 10\n").unwrap();
    // Two servers share the home, as an editor's and a terminal's would.
    let mut servers = [stage.open(), stage.open()];
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let client = TestClient::connect(&mut servers[number % 2]).await;
        writers.spawn(count(client));
    }
    writers.join_all().await;
    assert_eq!(
        std::fs::read_to_string(stage.config()).unwrap(),
        "model_context_window = 30\n"
    );
}
