//! `thread/checkpoint/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/checkpoint/list").await;
}
