//! `experimentalFeature/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("experimental_feature/list").await;
}
