//! `config/mcpServer/reload`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("config/mcp_server/reload").await;
}
