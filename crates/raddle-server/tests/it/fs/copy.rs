//! `fs/copy`

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::deep_folder::{DeepFolder, LEVELS};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/copy").await;
}

fn params(harness: &Harness, from: &str, to: &str) -> Value {
    json!({"sourcePath": harness.path(from), "destinationPath": harness.path(to), "recursive": true})
}

#[tokio::test]
async fn links_are_copied_as_links() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(harness.path("folder")).unwrap();
    symlink("nowhere", harness.path("folder/link")).unwrap();
    client
        .ask("fs/copy", params(&harness, "folder", "copy"))
        .await
        .expect("a copy");
    assert_eq!(
        std::fs::read_link(harness.path("copy/link"))
            .unwrap()
            .to_str(),
        Some("nowhere")
    );
}

#[tokio::test]
async fn another_name_of_the_source_does_not_destroy_it() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(harness.path("folder")).unwrap();
    std::fs::write(harness.path("folder/file"), "hello").unwrap();
    symlink(harness.path("folder"), harness.path("folder_link")).unwrap();
    symlink(harness.path("folder/file"), harness.path("file_link")).unwrap();
    std::fs::hard_link(harness.path("folder/file"), harness.path("file_twin")).unwrap();
    for (from, to) in [
        ("folder/file", "file_link"),
        ("folder/file", "file_twin"),
        ("folder/file", "folder_link/file"),
        ("folder", "folder_link/inside"),
        ("folder", "folder_link/not/yet/there"),
    ] {
        let refused = client
            .ask("fs/copy", params(&harness, from, to))
            .await
            .expect_err(to);
        assert_eq!(refused["code"], -32600, "{to}: {refused}");
        assert_eq!(
            std::fs::read_to_string(harness.path("folder/file")).unwrap(),
            "hello",
            "{to}"
        );
        assert_eq!(
            std::fs::read_dir(harness.path("folder")).unwrap().count(),
            1,
            "{to}"
        );
    }
    // A name with the same prefix is another folder.
    client
        .ask("fs/copy", params(&harness, "folder", "folder2"))
        .await
        .expect("a copy");
}

#[tokio::test]
async fn a_tree_of_any_depth_is_copied_as_far_as_paths_go() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let _deep = DeepFolder::new(harness.path("deep"), LEVELS);
    let _copy = DeepFolder::created_by_server(harness.path("copy"));
    let answer = client
        .ask("fs/copy", params(&harness, "deep", "copy"))
        .await;
    let refused = answer.expect_err("too deep");
    assert_eq!(refused["code"], -32600);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("too long for the system"), "{message}");
    assert!(message.len() < 600, "{message}");

    // It was copied as deep as a path can be.
    let copy = harness.path("copy");
    let levels = (4000 - copy.len()) / 2;
    assert!(Path::new(&format!("{copy}{}", "/d".repeat(levels))).is_dir());
    for name in ["deep", "copy"] {
        let removed = client.ask("fs/remove", json!({"path": harness.path(name)}));
        assert_eq!(removed.await, Ok(json!({})), "{name}");
    }
}
