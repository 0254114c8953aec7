//! `thread/unarchive`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/unarchive").await;
}
