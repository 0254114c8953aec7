//! `mcpServer/tool/call`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("mcp_server/tool/call").await;
}
