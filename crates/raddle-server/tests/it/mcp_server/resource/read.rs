//! `mcpServer/resource/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("mcp_server/resource/read").await;
}
