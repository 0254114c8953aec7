//! `mcpServerStatus/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("mcp_server_status/list").await;
}
