//! `thread/queue/update`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/queue/update").await;
}
