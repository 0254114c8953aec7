//! `thread/items/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/items/read").await;
}
