//! `plugin/call`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("plugin/call").await;
}
