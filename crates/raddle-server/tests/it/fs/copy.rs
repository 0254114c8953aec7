//! `fs/copy`

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::deep_folder::{DeepFolder, LEVELS};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/copy").await;
}

fn params(stage: &Stage, from: &str, to: &str) -> Value {
    json!({"sourcePath": stage.path(from), "destinationPath": stage.path(to), "recursive": true})
}

#[tokio::test]
async fn links_are_copied_as_links() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(stage.path("folder")).unwrap();
    symlink("nowhere", stage.path("folder/link")).unwrap();
    client
        .ask("fs/copy", params(&stage, "folder", "copy"))
        .await
        .expect("a copy");
    assert_eq!(
        std::fs::read_link(stage.path("copy/link"))
            .unwrap()
            .to_str(),
        Some("nowhere")
    );
}

#[tokio::test]
async fn another_name_of_the_source_does_not_destroy_it() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(stage.path("folder")).unwrap();
    std::fs::write(stage.path("folder/file"), "hello").unwrap();
    symlink(stage.path("folder"), stage.path("folder_link")).unwrap();
    symlink(stage.path("folder/file"), stage.path("file_link")).unwrap();
    std::fs::hard_link(stage.path("folder/file"), stage.path("file_twin")).unwrap();
    for (from, to) in [
        ("folder/file", "file_link"),
        ("folder/file", "file_twin"),
        ("folder/file", "folder_link/file"),
        ("folder", "folder_link/inside"),
        ("folder", "folder_link/not/yet/there"),
    ] {
        let refused = client
            .ask("fs/copy", params(&stage, from, to))
            .await
            .expect_err(to);
        assert_eq!(refused["code"], -32600, "{to}: {refused}");
        assert_eq!(
            std::fs::read_to_string(stage.path("folder/file")).unwrap(),
            "hello",
            "{to}"
        );
        assert_eq!(
            std::fs::read_dir(stage.path("folder")).unwrap().count(),
            1,
            "{to}"
        );
    }
    // A name that only begins alike is another folder.
    client
        .ask("fs/copy", params(&stage, "folder", "folder2"))
        .await
        .expect("a copy");
}

#[tokio::test]
async fn a_tree_of_any_depth_is_copied_as_far_as_paths_go() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let _deep = DeepFolder::new(stage.path("deep"), LEVELS);
    let _copied = DeepFolder::made_elsewhere(stage.path("copy"));
    let answer = client.ask("fs/copy", params(&stage, "deep", "copy")).await;
    let refused = answer.expect_err("too deep");
    assert_eq!(refused["code"], -32600);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("too long for the system"), "{message}");
    assert!(message.len() < 600, "{message}");

    // As deep as a path can be it has come.
    let copy = stage.path("copy");
    let levels = (4000 - copy.len()) / 2;
    assert!(Path::new(&format!("{copy}{}", "/d".repeat(levels))).is_dir());
    for name in ["deep", "copy"] {
        let removed = client.ask("fs/remove", json!({"path": stage.path(name)}));
        assert_eq!(removed.await, Ok(json!({})), "{name}");
    }
}
