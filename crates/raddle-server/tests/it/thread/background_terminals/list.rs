//! `thread/backgroundTerminals/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/background_terminals/list").await;
}
