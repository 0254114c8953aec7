//! `server/diagnostics`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("server/diagnostics").await;
}
