//! `thread/compact/start`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/compact/start").await;
}
