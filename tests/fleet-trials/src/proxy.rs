//! TCP proxy before the server, which ends connections and delays bytes at random.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use support::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Time for which a cut connection waits for the server's answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Treatment of connections by the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    None,
    /// Connections end: before a request, after it, after its answer, or before it arrives late.
    Cuts,
    /// Answers are delayed, some of them beyond the time of a statement.
    Delays,
}

/// A proxy before one server. Its tasks end with the runtime.
pub struct FaultProxy {
    pub port: u16,
    shared: Arc<ProxyState>,
}

struct ProxyState {
    server: u16,
    disturbance: Mutex<Disturbance>,
    rng: Mutex<Rng>,
    disturbed: AtomicU64,
}

/// Treatment of a request.
enum RequestFate {
    Pass,
    /// The connection ends without it.
    Lost,
    /// It is sent, and the connection ends at once.
    Sent,
    /// It is sent, and the connection ends once the server has answered.
    Answered,
    /// The connection ends, and the request is sent after this time.
    Late(Duration),
}

impl FaultProxy {
    pub async fn start(server: u16, seed: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(ProxyState {
            server,
            disturbance: Mutex::new(Disturbance::None),
            rng: Mutex::new(Rng::new(seed)),
            disturbed: AtomicU64::new(0),
        });
        let state = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move { state.serve(client).await });
            }
        });
        Ok(Self { port, shared })
    }

    pub fn disturb(&self, disturbance: Disturbance) {
        let current = &self.shared.disturbance;
        *current.lock().unwrap_or_else(PoisonError::into_inner) = disturbance;
    }

    /// Number of requests or answers that were disturbed.
    pub fn disturbed(&self) -> u64 {
        self.shared.disturbed.load(Ordering::Relaxed)
    }
}

impl ProxyState {
    async fn serve(&self, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", self.server)).await else {
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let mut request = Vec::with_capacity(CHUNK_BYTES);
        let mut answer = Vec::with_capacity(CHUNK_BYTES);
        loop {
            request.clear();
            answer.clear();
            tokio::select! {
                read = client.read_buf(&mut request) => {
                    if !matches!(read, Ok(1..)) {
                        return;
                    }
                    match self.request_fate() {
                        RequestFate::Pass => {}
                        RequestFate::Lost => return,
                        RequestFate::Late(after) => {
                            drop(client);
                            tokio::time::sleep(after).await;
                            return send(server, &request, ANSWER_MAX).await;
                        }
                        RequestFate::Sent => {
                            drop(client);
                            return send(server, &request, ANSWER_MAX).await;
                        }
                        RequestFate::Answered => {
                            send(server, &request, ANSWER_MAX).await;
                            return;
                        }
                    }
                    if server.write_all(&request).await.is_err() {
                        return;
                    }
                }
                read = server.read_buf(&mut answer) => {
                    if !matches!(read, Ok(1..)) {
                        return;
                    }
                    if let Some(delay) = self.delay() {
                        tokio::time::sleep(delay).await;
                    }
                    if client.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn disturbance(&self) -> Disturbance {
        *self
            .disturbance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn request_fate(&self) -> RequestFate {
        if self.disturbance() != Disturbance::Cuts {
            return RequestFate::Pass;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        if rng.below(60) != 0 {
            return RequestFate::Pass;
        }
        self.disturbed.fetch_add(1, Ordering::Relaxed);
        match rng.below(5) {
            0 => RequestFate::Lost,
            1 => RequestFate::Answered,
            2 => RequestFate::Late(Duration::from_millis(rng.range(5, 900))),
            _ => RequestFate::Sent,
        }
    }

    fn delay(&self) -> Option<Duration> {
        if self.disturbance() != Disturbance::Delays {
            return None;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = match rng.below(600) {
            0 => rng.range(1100, 1800),
            1..30 => rng.range(2, 120),
            _ => return None,
        };
        self.disturbed.fetch_add(1, Ordering::Relaxed);
        Some(Duration::from_millis(ms))
    }
}

/// Sends a request whose client is gone, and waits until the server has answered.
async fn send(mut server: TcpStream, request: &[u8], limit: Duration) {
    if server.write_all(request).await.is_err() {
        return;
    }
    let mut answer = Vec::with_capacity(CHUNK_BYTES);
    let answered = async {
        // `ReadyForQuery`, of six bytes, is the last message of an answer.
        while let Ok(1..) = server.read_buf(&mut answer).await {
            if answer.len() >= 6 && answer[answer.len() - 6..][..5] == *b"Z\0\0\0\x05" {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(limit, answered).await;
}
