//! The pages for those who watch a server: `/livez` and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raddle_agent::JournalHealth;
use raddle_rpc::{Access, Close, Connection, ConnectionLimits, Frame, HttpPage, LazyPage, memory};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout};

use crate::metrics;
use crate::services::ServerState;

/// How long a part may take to answer before it counts as stuck.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long what was found out is good for: those who ask often do not ask the parts.
const HEALTH_TTL: Duration = Duration::from_secs(1);

/// How many callers may wait for the loop. Only one look is under way at a time.
const CALLERS: usize = 1;

/// The request that goes the way of all others.
const HELLO: &[u8] =
    br#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"livez","version":"1"}}}"#;

/// The pages of a server.
#[derive(Debug)]
pub(crate) struct StatusPages {
    probe: Arc<HealthProbe>,
}

#[derive(Debug)]
struct HealthProbe {
    state: Arc<ServerState>,
    /// To the loop that takes connections.
    callers: mpsc::Sender<Connection>,
    /// What was found last. Held while someone looks, so that others wait for what it finds.
    last: Mutex<Option<(Instant, Health)>>,
}

/// What was found out.
#[derive(Clone, Debug)]
struct Health {
    is_well: bool,
    page: Value,
}

/// The pages, and the callers of `/livez`: whoever takes connections must serve these like any other.
pub(crate) fn open(rooms: Arc<ServerState>) -> (StatusPages, mpsc::Receiver<Connection>) {
    let (callers, called) = mpsc::channel(CALLERS);
    let looking = Arc::new(HealthProbe {
        state: rooms,
        callers,
        last: Mutex::default(),
    });
    (StatusPages { probe: looking }, called)
}

impl raddle_rpc::AdminPages for StatusPages {
    fn page(&self, path: &str) -> Option<LazyPage> {
        let looking = self.probe.clone();
        match path {
            "/livez" => Some(LazyPage {
                access: Access::Everyone,
                page: Box::pin(async move { looking.health().await.show() }),
            }),
            "/metrics" => Some(LazyPage {
                access: Access::Admitted,
                page: Box::pin(async move { looking.metrics() }),
            }),
            _ => None,
        }
    }

    fn blocked_page(&self) -> HttpPage {
        let health = Health {
            is_well: false,
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
            text: metrics::text(&self.state),
        }
    }

    async fn health(&self) -> Health {
        let mut last = self.last.lock().await;
        if let Some((at, health)) = &*last
            && at.elapsed() < HEALTH_TTL
        {
            return health.clone();
        }
        let health = self.look().await;
        *last = Some((Instant::now(), health.clone()));
        health
    }

    async fn look(&self) -> Health {
        let (passed, journal) = tokio::join!(
            timeout(PROBE_TIMEOUT, self.probe_loop()),
            timeout(PROBE_TIMEOUT, self.state.threads.try_journal()),
        );
        let passes = passed == Ok(true);
        let (answers, store) = match journal {
            Ok(JournalHealth::Writable) => (true, "ok"),
            Ok(JournalHealth::ReadOnly) => (true, "readOnly"),
            Ok(JournalHealth::Full) => (true, "full"),
            Ok(JournalHealth::Unavailable) | Err(_) => (false, "stuck"),
        };
        let is_well = passes && answers;
        let of = |well: bool| if well { "ok" } else { "stuck" };
        Health {
            is_well,
            page: json!({
                "status": of(is_well),
                "parts": { "loop": of(passes), "store": store },
            }),
        }
    }

    /// Goes in as a client, says hello, and sees whether it is answered.
    async fn probe_loop(&self) -> bool {
        let (mut near, far) = memory(ConnectionLimits::default());
        if self.callers.send(far).await.is_err() {
            return false;
        }
        near.outgoing.send(Bytes::from_static(HELLO));
        let answer = near.incoming.next().await;
        near.outgoing.close(Close::NORMAL);
        matches!(answer, Some(Frame::Message(_)))
    }
}

impl Health {
    fn show(&self) -> HttpPage {
        HttpPage {
            status: if self.is_well { 200 } else { 503 },
            media: "application/json",
            text: format!("{}\n", self.page),
        }
    }
}
