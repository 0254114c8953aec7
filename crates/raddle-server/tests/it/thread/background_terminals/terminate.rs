//! `thread/backgroundTerminals/terminate`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/background_terminals/terminate").await;
}
