//! `mcpServer/oauth/login`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("mcp_server/oauth/login").await;
}
