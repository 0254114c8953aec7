//! `thread/queue/start`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/start").await;
}
