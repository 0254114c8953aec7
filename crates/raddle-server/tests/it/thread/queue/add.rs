//! `thread/queue/add`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/add").await;
}
