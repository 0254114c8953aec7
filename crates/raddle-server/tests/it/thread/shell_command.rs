//! `thread/shellCommand`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/shell_command").await;
}
