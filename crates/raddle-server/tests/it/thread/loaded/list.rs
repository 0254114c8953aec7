//! `thread/loaded/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/loaded/list").await;
}
