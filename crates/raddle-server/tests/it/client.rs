//! A client on the in-memory connection, for what a written conversation cannot say.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use raddle_rpc::{
    Close, Connection, ConnectionLimits, Frame, Outgoing, Transport, WriterStep, memory,
};
use raddle_server::{Options, Paths, Server};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::player::{ClientWire, Stage};

/// How long anything may take. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

/// Plays a conversation over the in-memory connection.
pub async fn play(name: &str) {
    crate::player::play(name, start).await;
}

async fn start(stage: &Stage) -> MemoryWire {
    let mut server = stage.open();
    let (client, far) = memory(ConnectionLimits::default());
    server.serve(far);
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

impl Stage {
    /// The usual options on this stage.
    pub fn options(&self) -> Options {
        let paths = Paths {
            home: self.home.clone(),
            system_config: self.system_config(),
            user_config: self.config(),
            skills: self.home.join("skills"),
            rules: vec![self.home.join("rules.toml")],
            threads: Some(self.home.join("threads")),
        };
        Options {
            keeper: crate::keeper::of_tests(),
            ..Options::new(paths)
        }
    }

    /// What the model says in this conversation, one message in each call.
    fn says(&self) -> Vec<&str> {
        self.says.iter().map(String::as_str).collect()
    }

    pub fn open(&self) -> Server {
        Server::open(self.options(), crate::script::threads(&self.says())).expect("a server")
    }

    /// A path of the workspace, as the wire says it.
    pub fn path(&self, name: &str) -> String {
        self.workspace.join(name).display().to_string()
    }
}

/// A client that has introduced itself. What it leaves unread at its end is not looked at.
pub struct TestClient {
    pub connection: Connection,
    /// The server's queue of frames for this client.
    pub queue: Outgoing,
    /// Closes when the server is done with this client.
    pub ended: watch::Receiver<()>,
    next_id: i64,
}

impl TestClient {
    pub async fn connect(server: &mut Server) -> Self {
        Self::connect_within(server, ConnectionLimits::default()).await
    }

    /// One that may use what is experimental.
    pub async fn connect_boldly(server: &mut Server) -> Self {
        let wishes = json!({"experimentalApi": true, "extensions": {"raddle/seq": {}}});
        Self::introduced(server, ConnectionLimits::default(), wishes).await
    }

    /// One that opts into nothing.
    pub async fn connect_plainly(server: &mut Server) -> Self {
        Self::introduced(server, ConnectionLimits::default(), json!(null)).await
    }

    pub async fn connect_within(server: &mut Server, limits: ConnectionLimits) -> Self {
        let extensions = json!({"raddle/seq": {}, "raddle/idempotency": {}});
        Self::introduced(server, limits, json!({"extensions": extensions})).await
    }

    pub async fn introduced(
        server: &mut Server,
        limits: ConnectionLimits,
        capabilities: Value,
    ) -> Self {
        let (connection, far) = memory(limits);
        let queue = far.outgoing.clone();
        let ended = server.serve(far);
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

    /// The next message.
    pub async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("a message, not the end")
    }

    /// The next message, or nothing at the end of the connection.
    pub async fn next_or_end(&mut self) -> Option<Value> {
        let frame = timeout(LIMIT, self.connection.incoming.next())
            .await
            .expect("a message in time")?;
        let Frame::Message(frame) = frame else {
            panic!("a message, not {frame:?}");
        };
        Some(serde_json::from_slice(&frame).expect("JSON"))
    }

    /// Asks and waits for the answer, which must be the next message.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        let mut message = self.next().await;
        assert_eq!(message["id"], id, "{message}");
        match message.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(message["error"].take()),
        }
    }

    /// Begins a thread, and hears that it has begun.
    pub async fn start_thread(&mut self) -> Value {
        let begun = self.ask("thread/start", json!({})).await;
        let id = begun.expect("a thread")["thread"]["id"].take();
        assert_eq!(self.next().await["method"], "thread/started");
        id
    }

    /// Goes away without a word. When this returns, the server knows.
    pub async fn leave(self) -> ClosedClient {
        drop(self.connection);
        let gone = self.queue.when_gone();
        timeout(LIMIT, gone).await.expect("noticed in time");
        ClosedClient { ended: self.ended }
    }

    /// Waits for the server to be done with this client.
    pub async fn when_ended(&mut self) {
        let ended = async { while self.ended.changed().await.is_ok() {} };
        timeout(LIMIT, ended).await.expect("an end in time");
    }
}

/// A client that went away.
pub struct ClosedClient {
    ended: watch::Receiver<()>,
}

impl ClosedClient {
    /// Waits for the server to be done with it.
    pub async fn when_ended(&mut self) {
        let ended = async { while self.ended.changed().await.is_ok() {} };
        timeout(LIMIT, ended).await.expect("an end in time");
    }
}

/// The number of an answer.
pub fn id_of(message: &Value) -> i64 {
    message["id"]
        .as_i64()
        .unwrap_or_else(|| panic!("an answer, not {message}"))
}

/// Bytes as the wire carries them.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A client that takes what is queued for it only when told to.
pub struct StalledClient {
    connection: Connection,
    /// The server's queue of frames for this client, with nobody who empties it.
    pub outgoing: Outgoing,
    next_id: i64,
}

impl StalledClient {
    pub async fn connect(server: &mut Server, outgoing_bytes_max: usize) -> Self {
        let (connection, mut far) = memory(ConnectionLimits::default());
        // Like a parent process: it may say nothing more and still take answers.
        far.peer.transport = Transport::Stdio;
        let outgoing = Outgoing::new(outgoing_bytes_max);
        far.outgoing = outgoing.clone();
        server.serve(far);
        let mut deaf = Self {
            connection,
            outgoing,
            next_id: 1,
        };
        let params = json!({"clientInfo": {"name": "deaf", "version": "1"}});
        deaf.request("initialize", params);
        assert!(deaf.take().await[0]["result"].is_object());
        // To ask for more says that what was taken is written, also when there is no more.
        let mut batch = Vec::new();
        let more = deaf.outgoing.take(&mut batch);
        assert!(timeout(Duration::ZERO, more).await.is_err());
        assert_eq!(deaf.outgoing.queued_bytes(), 0);
        deaf
    }

    pub fn request(&mut self, method: &str, params: Value) {
        let message = json!({"id": self.next_id, "method": method, "params": params});
        self.next_id += 1;
        self.connection.outgoing.send(message.to_string().into());
    }

    /// Says nothing more.
    pub fn hang_up(&self) {
        self.connection.outgoing.close(Close::NORMAL);
    }

    /// Takes all that is queued, and waits for something if nothing is. What was taken before counts as
    /// written now.
    pub async fn take(&mut self) -> Vec<Value> {
        let mut batch = Vec::new();
        let taken = timeout(LIMIT, self.outgoing.take(&mut batch)).await;
        assert!(matches!(taken, Ok(WriterStep::Frames)), "{taken:?}");
        let read = |frame: &Bytes| serde_json::from_slice(frame).expect("JSON");
        batch.iter().map(read).collect()
    }

    /// Waits until something is queued.
    pub async fn when_queued(&self) {
        let queued = async {
            while self.outgoing.queued_bytes() == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, queued).await.expect("something in time");
    }
}

/// While this is there, a write of the configuration waits for it, as for another server of the home.
pub struct ConfigWriteLock {
    _lock: std::fs::File,
}

impl ConfigWriteLock {
    pub fn new(stage: &Stage) -> Self {
        let lock = std::fs::File::create(stage.home.join("config.toml.lock")).expect("a file");
        lock.lock().expect("nobody else writes yet");
        Self { _lock: lock }
    }

    /// Sends a request that waits. When this returns, the server has it.
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

/// Whether this is the answer to a request that had to wait.
pub fn is_slow_answer(message: &Value, id: i64) -> bool {
    message["id"] == id && message["result"]["status"] == "ok"
}

/// A named pipe. Whoever opens it to read waits, because nobody writes.
pub struct NamedPipe {
    path: std::path::PathBuf,
}

impl NamedPipe {
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        Self { path }
    }
}

impl Drop for NamedPipe {
    /// Lets everyone go who waits for the pipe: a blocked reader would keep its runtime from ending.
    fn drop(&mut self) {
        let both = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path);
        // Gone first, then closed: who has not opened it by now finds nothing to wait for.
        let _ = std::fs::remove_file(&self.path);
        drop(both);
    }
}
