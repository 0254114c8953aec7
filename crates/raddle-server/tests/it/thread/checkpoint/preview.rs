//! `thread/checkpoint/preview`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/checkpoint/preview").await;
}
