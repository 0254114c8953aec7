//! `plugin/installed`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("plugin/installed").await;
}
