//! `thread/items/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/items/list").await;
}
