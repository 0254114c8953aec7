//! `thread/diff/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/diff/read").await;
}
