//! TCP proxy before a server, which loses or delays what a client sends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Treatment of a request by the proxy. After it, the proxy passes everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sends them, waits for the answer, and ends the connection without it.
    LoseAnswer,
    /// Ends the connection without sending them.
    LoseRequest,
    /// Ends the connection of the client, and sends them later.
    Delay,
    /// Sends them later, on the same connection.
    Hold,
}

/// How the proxy treats connections.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    /// A fault of the first request that contains some bytes.
    Fault(Fault, Vec<u8>),
    Refuse,
    /// Connections have other options, as with a pooler that ignores some.
    Rewrite(String, String),
}

pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
    cut: watch::Sender<()>,
}

struct Shared {
    server: u16,
    mode: Mutex<Mode>,
    cancel_requests: AtomicUsize,
    /// Bytes that were not sent yet, and their connection to the server.
    delayed: Mutex<Option<(TcpStream, Vec<u8>)>>,
    /// Ends the wait of bytes that are held.
    go_on: Notify,
}

impl Proxy {
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cut, _) = watch::channel(());
        let shared = Arc::new(Shared {
            server,
            mode: Mutex::new(Mode::Pass),
            cancel_requests: AtomicUsize::new(0),
            delayed: Mutex::new(None),
            go_on: Notify::new(),
        });
        let (state, ends) = (Arc::clone(&shared), cut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, mut end) = (Arc::clone(&state), ends.subscribe());
                tokio::spawn(async move {
                    tokio::select! {
                        () = state.serve(client) => {}
                        _ = end.changed() => {}
                    }
                });
            }
        });
        Self { port, shared, cut }
    }

    /// Returns the address of a server as clients of the proxy write it.
    pub fn address(&self, server: &str) -> String {
        let (from, to) = (self.shared.server, self.port);
        server.replace(&format!("port={from}"), &format!("port={to}"))
    }

    /// Applies a fault to the next request that contains a text, or other bytes.
    pub fn arm(&self, fault: Fault, bytes: impl AsRef<[u8]>) {
        self.set(Mode::Fault(fault, bytes.as_ref().to_vec()));
    }

    /// Waits until the fault has happened.
    pub async fn fired(&self) {
        while !self.has_fired() {
            tokio::task::yield_now().await;
        }
    }

    /// Sends what is held.
    pub fn go_on(&self) {
        self.shared.go_on.notify_one();
    }

    /// Whether the fault has happened.
    pub fn has_fired(&self) -> bool {
        *self.shared.mode.lock().unwrap() == Mode::Pass
    }

    /// Ends all connections, and refuses new ones.
    pub fn refuse(&self) {
        self.set(Mode::Refuse);
        self.cut.send_replace(());
    }

    /// Replaces an option of new connections by one of the same length.
    pub fn rewrite(&self, option: &str, replacement: &str) {
        assert_eq!(option.len(), replacement.len());
        self.set(Mode::Rewrite(option.to_owned(), replacement.to_owned()));
    }

    pub fn pass(&self) {
        self.set(Mode::Pass);
    }

    fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    /// Sends the delayed bytes, and waits until the server has processed them.
    pub async fn release(&self) {
        let delayed = self.shared.delayed.lock().unwrap().take();
        let (mut server, bytes) = delayed.expect("nothing is delayed");
        server.write_all(&bytes).await.unwrap();
        assert!(read_answer(&mut server).await, "the server did not answer");
    }

    /// Number of requests to cancel a statement.
    pub fn cancel_requests(&self) -> usize {
        self.shared.cancel_requests.load(Ordering::SeqCst)
    }
}

/// Reads until the server is ready for the next statement. Returns false if it is not.
async fn read_answer(server: &mut TcpStream) -> bool {
    let mut answer = Vec::with_capacity(CHUNK_BYTES);
    loop {
        match server.read_buf(&mut answer).await {
            Ok(0) | Err(_) => return false,
            // The last message is `ReadyForQuery`, of six bytes.
            Ok(_) if answer.len() >= 6 && answer[answer.len() - 6..][..5] == *b"Z\0\0\0\x05" => {
                return true;
            }
            Ok(_) => {}
        }
    }
}

/// Bytes that are read at once. A request of a test is shorter.
const CHUNK_BYTES: usize = 256 << 10;

/// Code of a request to cancel a statement, after its length.
const CANCEL_REQUEST: [u8; 8] = [0, 0, 0, 16, 4, 210, 22, 46];

impl Shared {
    async fn serve(&self, mut client: TcpStream) {
        if *self.mode.lock().unwrap() == Mode::Refuse {
            return;
        }
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", self.server)).await else {
            return;
        };
        let mut request = Vec::with_capacity(CHUNK_BYTES);
        let mut answer = Vec::with_capacity(CHUNK_BYTES);
        let mut is_first = true;
        loop {
            request.clear();
            answer.clear();
            tokio::select! {
                read = client.read_buf(&mut request) => {
                    if !matches!(read, Ok(1..)) {
                        return;
                    }
                    if is_first && request.starts_with(&CANCEL_REQUEST) {
                        self.cancel_requests.fetch_add(1, Ordering::SeqCst);
                    }
                    is_first = false;
                    match self.next(&request) {
                        Mode::Fault(Fault::Hold, _) => self.go_on.notified().await,
                        Mode::Fault(fault, _) => {
                            return self.fault(fault, client, server, request).await;
                        }
                        Mode::Rewrite(from, to) => rewrite(&mut request, &from, &to),
                        Mode::Pass | Mode::Refuse => {}
                    }
                    if server.write_all(&request).await.is_err() {
                        return;
                    }
                }
                read = server.read_buf(&mut answer) => {
                    if !matches!(read, Ok(1..)) || client.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the mode for a request, and ends a fault that it causes.
    fn next(&self, request: &[u8]) -> Mode {
        let mut mode = self.mode.lock().unwrap();
        match &*mode {
            Mode::Fault(_, bytes) => {
                let mut places = request.windows(bytes.len());
                match places.any(|it| it == bytes.as_slice()) {
                    true => std::mem::replace(&mut *mode, Mode::Pass),
                    false => Mode::Pass,
                }
            }
            other => other.clone(),
        }
    }

    async fn fault(
        &self,
        fault: Fault,
        client: TcpStream,
        mut server: TcpStream,
        request: Vec<u8>,
    ) {
        match fault {
            Fault::LoseRequest | Fault::Hold => {}
            Fault::LoseAnswer => {
                server.write_all(&request).await.unwrap();
                read_answer(&mut server).await;
            }
            Fault::Delay => *self.delayed.lock().unwrap() = Some((server, request)),
        }
        drop(client);
    }
}

/// Replaces a text in a request.
fn rewrite(request: &mut [u8], from: &str, to: &str) {
    let mut places = request.windows(from.len());
    if let Some(at) = places.position(|it| it == from.as_bytes()) {
        request[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}
