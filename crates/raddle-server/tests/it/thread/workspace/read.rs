//! `thread/workspace/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/workspace/read").await;
}
