//! The pages for monitoring a server: `/livez`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raddle_agent::JournalHealth;
use raddle_rpc::{Access, Close, Connection, ConnectionLimits, Frame, HttpPage, LazyPage, memory};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout};

use crate::metrics::page;
use crate::services::ServerState;

/// Limit: time for the probe of the accept loop by `/livez`; beyond it, the server responds with
/// 503.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a health check is cached: frequent requests do not probe the components.
const HEALTH_TTL: Duration = Duration::from_secs(1);

/// Queue length of probes for the loop. Only one probe runs at a time.
const PROBES_MAX: usize = 1;

/// The request of a probe, which takes the path of all others.
const INITIALIZE: &[u8] =
    br#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"livez","version":"1"}}}"#;

/// The pages of a server.
#[derive(Debug)]
pub(crate) struct StatusPages {
    probe: Arc<HealthProbe>,
}

#[derive(Debug)]
struct HealthProbe {
    state: Arc<ServerState>,
    /// To the loop that accepts connections.
    probes: mpsc::Sender<Connection>,
    liveness: CachedHealth,
    readiness: CachedHealth,
}

/// The last result of a check. Locked during a check, so that other requests wait for its result.
type CachedHealth = Mutex<Option<(Instant, Health)>>;

/// Result of a health check.
#[derive(Clone, Debug)]
struct Health {
    is_healthy: bool,
    page: Value,
}

/// Returns the pages, and the connections of `/livez` probes: the accept loop must serve these like
/// any other.
pub(crate) fn open(state: Arc<ServerState>) -> (StatusPages, mpsc::Receiver<Connection>) {
    let (probes, connections) = mpsc::channel(PROBES_MAX);
    let probe = Arc::new(HealthProbe {
        state,
        probes,
        liveness: Mutex::default(),
        readiness: Mutex::default(),
    });
    (StatusPages { probe }, connections)
}

impl raddle_rpc::AdminPages for StatusPages {
    fn page(&self, path: &str) -> Option<LazyPage> {
        let probe = self.probe.clone();
        match path {
            "/livez" => Some(LazyPage {
                access: Access::Everyone,
                page: Box::pin(async move { probe.liveness().await.show() }),
            }),
            // A server whose store is of this machine is ready as soon as it listens.
            "/readyz" if probe.has_remote_store() => Some(LazyPage {
                access: Access::Everyone,
                page: Box::pin(async move { probe.readiness().await.show() }),
            }),
            "/metrics" => Some(LazyPage {
                access: Access::Admitted,
                page: Box::pin(async move { probe.metrics() }),
            }),
            _ => None,
        }
    }

    fn blocked_page(&self) -> HttpPage {
        let health = Health {
            is_healthy: false,
            page: json!({ "status": "stuck", "parts": { "loop": "stuck" } }),
        };
        health.show()
    }
}

impl HealthProbe {
    fn metrics(&self) -> HttpPage {
        HttpPage {
            status: 200,
            media: "text/plain; version=0.0.4; charset=utf-8",
            text: page::text(&self.state),
        }
    }

    fn has_remote_store(&self) -> bool {
        self.state.threads.durability().is_remote()
    }

    async fn liveness(&self) -> Health {
        cached(&self.liveness, self.check_liveness()).await
    }

    async fn readiness(&self) -> Health {
        cached(&self.readiness, self.check_readiness()).await
    }

    /// Checks the parts that a restart of the server would repair. A database is none of them.
    async fn check_liveness(&self) -> Health {
        let store = async {
            match self.has_remote_store() {
                true => None,
                false => Some(self.probe_store().await),
            }
        };
        let (loop_probe, store) = tokio::join!(timeout(PROBE_TIMEOUT, self.probe_loop()), store);
        let loop_is_ok = loop_probe == Ok(true);
        let store_is_ok = store.is_none_or(|it| it != JournalHealth::Unavailable);
        let is_healthy = loop_is_ok && store_is_ok;
        let mut parts = json!({ "loop": status_text(loop_is_ok) });
        if let Some(store) = store {
            parts["store"] = store_text(store).unwrap_or("stuck").into();
        }
        Health {
            is_healthy,
            page: json!({ "status": status_text(is_healthy), "parts": parts }),
        }
    }

    /// Checks whether the database accepts events. While it is full, clients can still read.
    async fn check_readiness(&self) -> Health {
        let store = self.probe_store().await;
        let is_healthy = matches!(store, JournalHealth::Writable | JournalHealth::Full);
        Health {
            is_healthy,
            page: json!({
                "status": if is_healthy { "ready" } else { "notReady" },
                "store": store_text(store).unwrap_or("unavailable"),
                "durability": self.state.threads.durability().name(),
            }),
        }
    }

    async fn probe_store(&self) -> JournalHealth {
        let threads = &self.state.threads;
        let health = timeout(threads.timeouts().probe, threads.try_journal()).await;
        health.unwrap_or(JournalHealth::Unavailable)
    }

    /// Connects as a client, sends `initialize`, and returns whether a response came.
    async fn probe_loop(&self) -> bool {
        let (mut client, server_side) = memory(ConnectionLimits::default());
        if self.probes.send(server_side).await.is_err() {
            return false;
        }
        client.outgoing.send(Bytes::from_static(INITIALIZE));
        let answer = client.incoming.next().await;
        client.outgoing.close(Close::NORMAL);
        matches!(answer, Some(Frame::Message(_)))
    }
}

/// Returns the last result, or that of a new check if the last is too old.
async fn cached(last: &CachedHealth, check: impl Future<Output = Health>) -> Health {
    let mut last = last.lock().await;
    if let Some((at, health)) = &*last
        && at.elapsed() < HEALTH_TTL
    {
        return health.clone();
    }
    let health = check.await;
    *last = Some((Instant::now(), health.clone()));
    health
}

fn status_text(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "stuck" }
}

/// Returns the state of a store that responds.
fn store_text(health: JournalHealth) -> Option<&'static str> {
    match health {
        JournalHealth::Writable => Some("ok"),
        JournalHealth::ReadOnly => Some("readOnly"),
        JournalHealth::Full => Some("full"),
        JournalHealth::Unavailable => None,
    }
}

impl Health {
    fn show(&self) -> HttpPage {
        HttpPage {
            status: if self.is_healthy { 200 } else { 503 },
            media: "application/json",
            text: format!("{}\n", self.page),
        }
    }
}
