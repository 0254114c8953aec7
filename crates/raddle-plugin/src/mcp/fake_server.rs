//! An MCP server inside a test, whose messages the test sends and receives.

use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};

use super::handler::Handler;

/// Capacity of the pipes to and from the server.
const PIPE_BYTES: usize = 4096;

/// A server of an older revision, connected to a handler.
pub(crate) struct FakeServer {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl FakeServer {
    /// Connects a handler. Dropping the service ends the connection.
    pub(crate) async fn connect(handler: Handler) -> (RunningService<RoleClient, Handler>, Self) {
        let (client, server) = duplex(PIPE_BYTES);
        let mode = ClientLifecycleMode::Initialize;
        let connecting = tokio::spawn(serve_client_with_lifecycle(handler, client, mode));
        let (input, output) = split(server);
        let input = BufReader::new(input).lines();
        let mut server = Self { input, output };
        let initialize = server.next().await;
        let result = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"},
        });
        let id = &initialize["id"];
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        server.send(response).await;
        assert_eq!(server.next().await["method"], "notifications/initialized");
        let service = connecting.await.expect("a task").expect("a client");
        (service, server)
    }

    /// Returns the next message of the client.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.input.next_line().await.expect("a line");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }

    /// Sends a message to the client.
    pub(crate) async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        let sent = self.output.write_all(line.as_bytes()).await;
        sent.expect("a client");
    }
}
