//! `thread/queue/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/list").await;
}
