//! `thread/name/set`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/name/set").await;
}
