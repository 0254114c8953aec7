//! `fs/remove`

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::client::TestClient;
use crate::deep_folder::DeepFolder;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/remove").await;
}

#[tokio::test]
async fn a_link_goes_and_what_it_points_to_stays() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(harness.path("folder")).unwrap();
    std::fs::write(harness.path("folder/file"), "x").unwrap();
    for link in ["link", "tree/link"] {
        std::fs::create_dir_all(harness.path("tree")).unwrap();
        std::os::unix::fs::symlink(harness.path("folder"), harness.path(link)).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", harness.path("dangling")).unwrap();
    for path in ["link", "tree", "dangling"] {
        let removed = client
            .ask("fs/remove", json!({"path": harness.path(path)}))
            .await;
        assert_eq!(removed, Ok(json!({})));
        assert!(std::fs::symlink_metadata(harness.path(path)).is_err());
        assert!(std::fs::exists(harness.path("folder/file")).unwrap());
    }
}

#[tokio::test]
async fn a_tree_of_any_depth_goes_and_takes_few_descriptors() {
    // Fewer than the tree has levels.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(256),
        maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let _deep = DeepFolder::new(harness.path("deep"), 500);
    std::fs::write(harness.path("deep/d/d/file"), "x").unwrap();
    let params = json!({"path": harness.path("deep")});
    assert_eq!(client.ask("fs/remove", params).await, Ok(json!({})));
    assert!(!std::fs::exists(harness.path("deep")).unwrap());
}

#[tokio::test]
async fn a_wide_tree_goes_with_all_that_is_in_it() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for folder in 0..60 {
        let inside = harness.path(&format!("wide/{folder}/inside"));
        std::fs::create_dir_all(&inside).unwrap();
        for file in 0..folder % 5 {
            std::fs::write(format!("{inside}/{file}"), "x").unwrap();
            std::fs::write(harness.path(&format!("wide/{folder}/{file}")), "x").unwrap();
        }
    }
    let params = json!({"path": harness.path("wide")});
    assert_eq!(client.ask("fs/remove", params).await, Ok(json!({})));
    assert!(!std::fs::exists(harness.path("wide")).unwrap());
}
