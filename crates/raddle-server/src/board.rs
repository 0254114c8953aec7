//! The pages for those who watch a server: `/livez` and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raddle_agent::Answers;
use raddle_rpc::{Close, Connection, Frame, Limits, Notice, Page, Readers, memory};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout};

use crate::metrics;
use crate::rooms::Rooms;

/// How long a part may take to answer before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long what was found out is good for: those who ask often do not ask the parts.
const FRESH: Duration = Duration::from_secs(1);

/// How many callers may wait for the loop. Only one look is under way at a time.
const CALLERS: usize = 1;

/// The request that goes the way of all others.
const HELLO: &[u8] =
    br#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"livez","version":"1"}}}"#;

/// The pages of a server.
#[derive(Debug)]
pub(crate) struct Board {
    looking: Arc<Looking>,
}

#[derive(Debug)]
struct Looking {
    rooms: Arc<Rooms>,
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
pub(crate) fn open(rooms: Arc<Rooms>) -> (Board, mpsc::Receiver<Connection>) {
    let (callers, called) = mpsc::channel(CALLERS);
    let looking = Arc::new(Looking {
        rooms,
        callers,
        last: Mutex::default(),
    });
    (Board { looking }, called)
}

impl raddle_rpc::Board for Board {
    fn at(&self, path: &str) -> Option<Notice> {
        let looking = self.looking.clone();
        match path {
            "/livez" => Some(Notice {
                readers: Readers::Everyone,
                page: Box::pin(async move { looking.health().await.show() }),
            }),
            "/metrics" => Some(Notice {
                readers: Readers::Admitted,
                page: Box::pin(async move { looking.metrics() }),
            }),
            _ => None,
        }
    }

    fn standstill(&self) -> Page {
        let health = Health {
            is_well: false,
            page: json!({ "status": "stuck", "parts": { "loop": "stuck" } }),
        };
        health.show()
    }
}

impl Looking {
    fn metrics(&self) -> Page {
        Page {
            status: 200,
            media: "text/plain; version=0.0.4; charset=utf-8",
            text: metrics::text(&self.rooms),
        }
    }

    async fn health(&self) -> Health {
        let mut last = self.last.lock().await;
        if let Some((at, health)) = &*last
            && at.elapsed() < FRESH
        {
            return health.clone();
        }
        let health = self.look().await;
        *last = Some((Instant::now(), health.clone()));
        health
    }

    async fn look(&self) -> Health {
        let (passed, journal) = tokio::join!(
            timeout(PATIENCE, self.pass()),
            timeout(PATIENCE, self.rooms.threads.try_journal()),
        );
        let passes = passed == Ok(true);
        let (answers, store) = match journal {
            Ok(Answers::Well) => (true, "ok"),
            Ok(Answers::ReadOnly) => (true, "readOnly"),
            Ok(Answers::Full) => (true, "full"),
            Ok(Answers::Badly) | Err(_) => (false, "stuck"),
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
    async fn pass(&self) -> bool {
        let (mut near, far) = memory(Limits::default());
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
    fn show(&self) -> Page {
        Page {
            status: if self.is_well { 200 } else { 503 },
            media: "application/json",
            text: format!("{}\n", self.page),
        }
    }
}
