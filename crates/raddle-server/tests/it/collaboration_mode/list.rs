//! `collaborationMode/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("collaboration_mode/list").await;
}
