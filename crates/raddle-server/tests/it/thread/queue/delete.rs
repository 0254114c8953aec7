//! `thread/queue/delete`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/delete").await;
}
