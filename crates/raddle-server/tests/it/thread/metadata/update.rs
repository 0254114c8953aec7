//! `thread/metadata/update`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/metadata/update").await;
}
