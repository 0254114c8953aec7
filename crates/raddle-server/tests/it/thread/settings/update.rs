//! `thread/settings/update`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/settings/update").await;
}
