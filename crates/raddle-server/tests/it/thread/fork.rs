//! `thread/fork`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/fork").await;
}
