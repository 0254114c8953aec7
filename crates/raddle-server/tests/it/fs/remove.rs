//! `fs/remove`

use serde_json::json;

use crate::client::Client;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/remove").await;
}

#[tokio::test]
async fn a_link_goes_and_what_it_points_to_stays() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    std::fs::create_dir(stage.path("folder")).unwrap();
    std::fs::write(stage.path("folder/file"), "x").unwrap();
    for link in ["link", "tree/link"] {
        std::fs::create_dir_all(stage.path("tree")).unwrap();
        std::os::unix::fs::symlink(stage.path("folder"), stage.path(link)).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", stage.path("dangling")).unwrap();
    for path in ["link", "tree", "dangling"] {
        let removed = client
            .ask("fs/remove", json!({"path": stage.path(path)}))
            .await;
        assert_eq!(removed, Ok(json!({})));
        assert!(std::fs::symlink_metadata(stage.path(path)).is_err());
        assert!(std::fs::exists(stage.path("folder/file")).unwrap());
    }
}
