//! A client on the in-memory connection, for cases that a conformance conversation cannot express.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use raddle_rpc::{
    Close, Connection, ConnectionLimits, Frame, Outgoing, Transport, WriterStep, memory,
};
use raddle_server::{AgentParts, Options, Paths, Server};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::checkpoints::ScriptedCheckpoints;
use crate::copies::ScriptedCopies;
use crate::player::{ClientWire, Harness};

/// Timeout for everything. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

/// Plays a conversation over the in-memory connection.
pub async fn play(name: &str) {
    crate::player::play(name, start).await;
}

async fn start(harness: &Harness) -> MemoryWire {
    let mut server = harness.open();
    let (client, server_side) = memory(ConnectionLimits::default());
    server.serve(server_side);
    MemoryWire {
        client,
        _server: server,
    }
}

struct MemoryWire {
    client: Connection,
    _server: Server,
}

impl ClientWire for MemoryWire {
    async fn send(&mut self, frame: &[u8]) {
        self.client.outgoing.send(Bytes::copy_from_slice(frame));
    }

    async fn recv(&mut self) -> Option<Vec<u8>> {
        match self.client.incoming.next().await? {
            Frame::Message(frame) => Some(frame.to_vec()),
            other => panic!("a message, not {other:?}"),
        }
    }

    async fn hang_up(&mut self) {
        self.client.outgoing.close(Close::NORMAL);
    }
}

impl Harness {
    /// Returns the default options for this harness.
    pub fn options(&self) -> Options {
        let paths = Paths {
            home: self.home.clone(),
            system_config: self.system_config(),
            user_config: self.config(),
            skills: self.home.join("skills"),
            shared_skills: vec![self.home.with_file_name("user/.agents/skills")],
            rules: vec![self.home.join("rules.toml")],
            threads: Some(self.home.join("threads")),
        };
        Options {
            keeper: crate::keeper::of_tests(),
            ..Options::new(paths)
        }
    }

    /// Returns the messages of the scripted model, one for each call.
    fn model_messages(&self) -> Vec<&str> {
        self.says.iter().map(String::as_str).collect()
    }

    pub fn open(&self) -> Server {
        self.open_with(ScriptedCheckpoints::of(self))
    }

    /// Opens a server with these checkpoints.
    pub fn open_with(&self, checkpoints: ScriptedCheckpoints) -> Server {
        let threads = crate::script::threads(&self.model_messages());
        let parts = |deps| AgentParts {
            checkpoints: Arc::new(checkpoints),
            copies: Arc::new(ScriptedCopies::of(self)),
            ..AgentParts::from(threads(deps))
        };
        Server::open(self.options(), parts).expect("a server")
    }

    /// Returns a path of the workspace as a string.
    pub fn path(&self, name: &str) -> String {
        self.workspace.join(name).display().to_string()
    }
}

/// A client that has sent `initialize`. Messages that it leaves unread are ignored.
pub struct TestClient {
    pub connection: Connection,
    /// The server's queue of frames for this client.
    pub queue: Outgoing,
    /// Closes when the server has finished this connection.
    pub ended: watch::Receiver<()>,
    next_id: i64,
}

impl TestClient {
    pub async fn connect(server: &mut Server) -> Self {
        Self::connect_within(server, ConnectionLimits::default()).await
    }

    /// Connects a client with the experimental API.
    pub async fn connect_experimental(server: &mut Server) -> Self {
        let capabilities = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        Self::connect_with(server, ConnectionLimits::default(), capabilities).await
    }

    /// Connects a client that opts into nothing.
    pub async fn connect_without_extensions(server: &mut Server) -> Self {
        Self::connect_with(server, ConnectionLimits::default(), json!(null)).await
    }

    pub async fn connect_within(server: &mut Server, limits: ConnectionLimits) -> Self {
        let extensions = json!({"raddle/seq": {}, "raddle/idempotency": {}});
        Self::connect_with(server, limits, json!({"extensions": extensions})).await
    }

    pub async fn connect_with(
        server: &mut Server,
        limits: ConnectionLimits,
        capabilities: Value,
    ) -> Self {
        let (connection, server_side) = memory(limits);
        let queue = server_side.outgoing.clone();
        let ended = server.serve(server_side);
        let mut client = Self {
            connection,
            queue,
            ended,
            next_id: 1,
        };
        let params = json!({
            "clientInfo": {"name": "test", "version": "1"},
            "capabilities": capabilities,
        });
        client.ask("initialize", params).await.expect("initialize");
        client
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"id": id, "method": method, "params": params}));
        id
    }

    pub fn send(&self, message: &Value) {
        let frame = message.to_string();
        self.connection.outgoing.send(frame.into());
    }

    /// Returns the next message.
    pub async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("a message, not the end")
    }

    /// Returns the next message, or none at the end of the connection.
    pub async fn next_or_end(&mut self) -> Option<Value> {
        let frame = timeout(LIMIT, self.connection.incoming.next())
            .await
            .expect("a message in time")?;
        let Frame::Message(frame) = frame else {
            panic!("a message, not {frame:?}");
        };
        Some(serde_json::from_slice(&frame).expect("JSON"))
    }

    /// Sends a request and waits for the response, which must be the next message.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        let mut message = self.next().await;
        assert_eq!(message["id"], id, "{message}");
        match message.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(message["error"].take()),
        }
    }

    /// Starts a thread, and receives its notification.
    pub async fn start_thread(&mut self) -> Value {
        let response = self.ask("thread/start", json!({})).await;
        let id = response.expect("a thread")["thread"]["id"].take();
        assert_eq!(self.next().await["method"], "thread/started");
        id
    }

    /// Disconnects without a close frame. When this returns, the server has noticed.
    pub async fn disconnect(self) -> ClosedClient {
        drop(self.connection);
        let noticed = self.queue.when_gone();
        timeout(LIMIT, noticed).await.expect("noticed in time");
        ClosedClient { ended: self.ended }
    }

    /// Waits until the server has finished this connection.
    pub async fn when_ended(&mut self) {
        let ended = async { while self.ended.changed().await.is_ok() {} };
        timeout(LIMIT, ended).await.expect("an end in time");
    }
}

/// A client that has disconnected.
pub struct ClosedClient {
    ended: watch::Receiver<()>,
}

impl ClosedClient {
    /// Waits until the server has finished the connection.
    pub async fn when_ended(&mut self) {
        let ended = async { while self.ended.changed().await.is_ok() {} };
        timeout(LIMIT, ended).await.expect("an end in time");
    }
}

/// Returns the response to a request, and skips the notifications before it.
pub async fn answer(client: &mut TestClient, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.request(method, params);
    loop {
        let mut message = client.next().await;
        if message["id"] == id && message.get("method").is_none() {
            return match message.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(message["error"].take()),
            };
        }
    }
}

/// Returns the id of a response.
pub fn id_of(message: &Value) -> i64 {
    message["id"]
        .as_i64()
        .unwrap_or_else(|| panic!("an answer, not {message}"))
}

/// Encodes bytes as the wire does.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A client that reads its queue only on demand.
pub struct StalledClient {
    connection: Connection,
    /// The server's queue of frames for this client, without a writer that empties it.
    pub outgoing: Outgoing,
    next_id: i64,
}

impl StalledClient {
    pub async fn connect(server: &mut Server, outgoing_bytes_max: usize) -> Self {
        let (connection, mut server_side) = memory(ConnectionLimits::default());
        // Like a parent process: it may close its input and still read responses.
        server_side.peer.transport = Transport::Stdio;
        let outgoing = Outgoing::new(outgoing_bytes_max);
        server_side.outgoing = outgoing.clone();
        server.serve(server_side);
        let mut client = Self {
            connection,
            outgoing,
            next_id: 1,
        };
        let params = json!({"clientInfo": {"name": "deaf", "version": "1"}});
        client.request("initialize", params);
        assert!(client.take_queued().await[0]["result"].is_object());
        // Taking more marks the frames taken before as written, also when there are no more.
        let mut batch = Vec::new();
        let more = client.outgoing.take(&mut batch);
        assert!(timeout(Duration::ZERO, more).await.is_err());
        assert_eq!(client.outgoing.queued_bytes(), 0);
        client
    }

    pub fn request(&mut self, method: &str, params: Value) {
        let message = json!({"id": self.next_id, "method": method, "params": params});
        self.next_id += 1;
        self.connection.outgoing.send(message.to_string().into());
    }

    /// Closes the client's input.
    pub fn hang_up(&self) {
        self.connection.outgoing.close(Close::NORMAL);
    }

    /// Takes all queued frames, and waits for one if the queue is empty. The frames taken before
    /// count as written now.
    pub async fn take_queued(&mut self) -> Vec<Value> {
        let mut batch = Vec::new();
        let step = timeout(LIMIT, self.outgoing.take(&mut batch)).await;
        assert!(matches!(step, Ok(WriterStep::Frames)), "{step:?}");
        let parse = |frame: &Bytes| serde_json::from_slice(frame).expect("JSON");
        batch.iter().map(parse).collect()
    }

    /// Waits until a frame is queued.
    pub async fn when_queued(&self) {
        let queued = async {
            while self.outgoing.queued_bytes() == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, queued).await.expect("something in time");
    }
}

/// While it exists, a write of the configuration waits for it, as for another server of the home.
pub struct ConfigWriteLock {
    _lock: std::fs::File,
}

impl ConfigWriteLock {
    pub fn new(harness: &Harness) -> Self {
        let lock = std::fs::File::create(harness.home.join("config.toml.lock")).expect("a file");
        lock.lock().expect("nobody else writes yet");
        Self { _lock: lock }
    }

    /// Sends a request that waits. When this returns, the server has received it.
    pub async fn request(&self, client: &mut TestClient) -> i64 {
        let id = client.request(
            "config/value/write",
            json!({"keyPath": "slow", "value": true, "mergeStrategy": "replace"}),
        );
        client
            .ask("account/read", json!({}))
            .await
            .expect("an answer");
        id
    }
}

/// Whether this is the response to a request that had to wait.
pub fn is_slow_answer(message: &Value, id: i64) -> bool {
    message["id"] == id && message["result"]["status"] == "ok"
}

/// A named pipe. Opening it for reading blocks, because it has no writer.
pub struct NamedPipe {
    path: std::path::PathBuf,
}

impl NamedPipe {
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let created = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(created.is_ok_and(|status| status.success()), "mkfifo");
        Self { path }
    }
}

impl Drop for NamedPipe {
    /// Releases every reader that waits for the pipe: a blocked reader would keep its runtime from
    /// ending.
    fn drop(&mut self) {
        let pipe = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path);
        // Removed first, then closed: a later reader finds nothing to wait for.
        let _ = std::fs::remove_file(&self.path);
        drop(pipe);
    }
}
