//! `thread/queue/reorder`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/reorder").await;
}
