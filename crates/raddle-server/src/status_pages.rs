//! The pages for monitoring a server: `/livez` and `/metrics`.

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
    /// The last result. Locked during a probe, so that other requests wait for its result.
    last: Mutex<Option<(Instant, Health)>>,
}

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
        last: Mutex::default(),
    });
    (StatusPages { probe }, connections)
}

impl raddle_rpc::AdminPages for StatusPages {
    fn page(&self, path: &str) -> Option<LazyPage> {
        let probe = self.probe.clone();
        match path {
            "/livez" => Some(LazyPage {
                access: Access::Everyone,
                page: Box::pin(async move { probe.health().await.show() }),
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

    async fn health(&self) -> Health {
        let mut last = self.last.lock().await;
        if let Some((at, health)) = &*last
            && at.elapsed() < HEALTH_TTL
        {
            return health.clone();
        }
        let health = self.check().await;
        *last = Some((Instant::now(), health.clone()));
        health
    }

    async fn check(&self) -> Health {
        let threads = &self.state.threads;
        let (loop_probe, journal) = tokio::join!(
            timeout(PROBE_TIMEOUT, self.probe_loop()),
            timeout(threads.timeouts().probe, threads.try_journal()),
        );
        let loop_is_ok = loop_probe == Ok(true);
        let (store_is_ok, store) = match journal {
            Ok(JournalHealth::Writable) => (true, "ok"),
            Ok(JournalHealth::ReadOnly) => (true, "readOnly"),
            Ok(JournalHealth::Full) => (true, "full"),
            Ok(JournalHealth::Unavailable) | Err(_) => (false, "stuck"),
        };
        let is_healthy = loop_is_ok && store_is_ok;
        let status_text = |is_ok: bool| if is_ok { "ok" } else { "stuck" };
        Health {
            is_healthy,
            page: json!({
                "status": status_text(is_healthy),
                "parts": { "loop": status_text(loop_is_ok), "store": store },
            }),
        }
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

impl Health {
    fn show(&self) -> HttpPage {
        HttpPage {
            status: if self.is_healthy { 200 } else { 503 },
            media: "application/json",
            text: format!("{}\n", self.page),
        }
    }
}
