//! What is known of one connection.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use raddle_protocol::{InitializeParams, Notification};
use raddle_rpc::{Calls, Id, Outgoing, Peer, notification};
use tokio::sync::Notify;

use crate::rooms::watches::Watch;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// One connection: who is there, what it may do, what it has running.
#[derive(Debug)]
pub(crate) struct Session {
    /// For the log.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    pub(crate) outgoing: Outgoing,
    /// Requests the server made of this client.
    pub(crate) calls: Calls,
    pub(crate) counts: Counts,
    client: OnceLock<Client>,
    running: Mutex<HashSet<Id>>,
    running_max: usize,
    finished: Notify,
    /// The client's file watches by its names for them.
    pub(crate) watches: Mutex<HashMap<String, Watch>>,
}

/// The client as it introduced itself.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) experimental: bool,
    opted_out: HashSet<String>,
}

/// Why a request may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// A request with this id is still running.
    SameId,
    /// Too many are running.
    TooMany,
}

impl Session {
    pub(crate) fn new(peer: Peer, outgoing: Outgoing, running_max: usize) -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            peer,
            outgoing,
            calls: Calls::default(),
            counts: Counts::default(),
            client: OnceLock::new(),
            running: Mutex::default(),
            running_max,
            finished: Notify::new(),
            watches: Mutex::default(),
        }
    }

    /// The client, once it has introduced itself.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// Takes the introduction; false if there was one already.
    pub(crate) fn introduce(&self, params: &InitializeParams) -> bool {
        let wishes = params.capabilities.as_ref();
        let client = Client {
            experimental: wishes.is_some_and(|it| it.experimental_api),
            opted_out: wishes
                .and_then(|it| it.opt_out_notification_methods.clone())
                .unwrap_or_default()
                .into_iter()
                .collect(),
        };
        self.client.set(client).is_ok()
    }

    /// Tells the client, unless it asked not to hear this.
    pub(crate) fn tell(&self, told: &Notification) {
        let method = told.method();
        if self
            .client()
            .is_some_and(|client| !client.opted_out.contains(method))
        {
            self.outgoing
                .send(notification(method, told, Some(now_ms())));
        }
    }

    /// Notes that a request runs.
    pub(crate) fn begin(&self, id: &Id) -> Result<(), Busy> {
        let mut running = self.running();
        if running.contains(id) {
            return Err(Busy::SameId);
        }
        if running.len() >= self.running_max {
            return Err(Busy::TooMany);
        }
        running.insert(id.clone());
        Ok(())
    }

    /// Sends a request's answer and notes that it was answered, in one step. The client may use the id
    /// again as soon as it has the answer, and who waits for the last answer must find it sent.
    pub(crate) fn answer(&self, id: &Id, frame: Bytes) {
        let mut running = self.running();
        running.remove(id);
        self.outgoing.send(frame);
        if running.is_empty() {
            drop(running);
            self.finished.notify_waiters();
        }
    }

    /// Resolves when nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let finished = self.finished.notified();
            if self.running().is_empty() {
                return;
            }
            finished.await;
        }
    }

    /// The client is gone: nobody will answer, nothing is watched.
    pub(crate) fn end(&self) {
        self.calls.end();
        self.watches().clear();
    }

    pub(crate) fn watches(&self) -> MutexGuard<'_, HashMap<String, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since the epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What came over a connection.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: AtomicU64,
    refused: AtomicU64,
    noise: AtomicU64,
    too_long: AtomicU64,
}

impl Counts {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn noise(&self) {
        self.noise.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn too_long(&self) {
        self.too_long.fetch_add(1, Ordering::Relaxed);
    }
}
